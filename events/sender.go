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
