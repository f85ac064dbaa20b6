package delivery

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/events"
)

// eventSender queues events and never blocks. A Sender is one.
type eventSender interface {
	Send(context.Context, cloudevents.Event)
}

// SendBestEffort sends the event of the data. It is for notifications that
// nothing depends on: invalid data is logged and not sent.
func SendBestEffort(ctx context.Context, to eventSender, d events.Data) {
	e, err := events.New(d)
	if err != nil {
		logging.FromContext(ctx).Errorw("Event not sent", "error", err)
		return
	}
	to.Send(ctx, e)
}
