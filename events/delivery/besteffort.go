package delivery

import (
	"context"

	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/events"
)

// SendBestEffort sends the event of the data. It is for reports that nothing
// depends on: invalid data is logged and not sent.
func SendBestEffort(ctx context.Context, to events.Sender, d events.Data) {
	e, err := events.New(d)
	if err != nil {
		logging.FromContext(ctx).Errorw("Event not sent", "error", err)
		return
	}
	to.Send(ctx, e)
}
