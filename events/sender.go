package events

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2"
)

// Sender queues an event to be sent and does not block. It does not report
// whether the event arrives. delivery.Sender implements it.
type Sender interface {
	Send(ctx context.Context, e cloudevents.Event)
}

// ConfirmingSender is a Sender that reports acceptance. delivery.Sender implements it.
type ConfirmingSender interface {
	Sender
	// SendAndConfirm is Send. It calls accepted, unless that is nil, when the Broker
	// has accepted the event. If it never calls it, the event may have arrived
	// nevertheless: send it again.
	SendAndConfirm(ctx context.Context, e cloudevents.Event, accepted func())
}
