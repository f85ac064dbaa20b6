// Package verdict is the function that stores verdicts of the server, by
// compare-and-swap: of a batch (changepod.verdict) in status.verdicts and
// status.podResults of the ChangePod, of an order (order.verdict) in
// status.orderVerdicts of the ChangeWorkload.
//
// A verdict replaces only one of a lower rank (no verdict < pass without
// rules < pass < fail), so duplicate, late and reordered deliveries lead to the same status. A
// result that a person wrote is never replaced.
package verdict

import (
	"context"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
)

// New returns the function.
func New(recorder *Recorder, server *functions.ClientSource) functions.Function {
	return func(ctx context.Context, e event.Event) error {
		if e.Type() == events.TypeOrderVerdict {
			received, err := events.ParseOrderVerdict(e)
			if err != nil {
				return functions.Permanent(err)
			}
			return recorder.RecordOrder(ctx, received, lazyRetriever{server})
		}
		received, err := events.ParseChangePodVerdict(e)
		if err != nil {
			return functions.Permanent(err)
		}
		return recorder.Record(ctx, received, lazyRetriever{server})
	}
}

// lazyRetriever reads the configuration of the server only if retrieve is needed:
// most verdicts have rules.
type lazyRetriever struct{ server *functions.ClientSource }

// Retrieve implements Retriever. Without a server it returns no pass.
func (l lazyRetriever) Retrieve(ctx context.Context, in altershield.Retrieve) (altershield.RetrieveAnswer, error) {
	client, _, err := l.server.Client(ctx)
	if client == nil || err != nil {
		return altershield.RetrieveAnswer{}, err
	}
	return client.Retrieve(ctx, in)
}
