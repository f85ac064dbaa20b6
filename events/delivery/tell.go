package delivery

import (
	"context"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/events"
)

// taker takes events and never blocks. A Sender is one.
type taker interface {
	Send(context.Context, cloudevents.Event)
}

// Tell sends the event of the data. It is for news that nothing depends on: of
// data that is not valid, nothing is sent, and that is logged.
func Tell(ctx context.Context, to taker, d events.Data) {
	e, err := events.New(d)
	if err != nil {
		logging.FromContext(ctx).Errorw("an event is not sent", "error", err)
		return
	}
	to.Send(ctx, e)
}
