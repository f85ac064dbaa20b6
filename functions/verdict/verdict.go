// Package verdict is the function that stores what the server said: of a batch
// (changepod.verdict) in status.verdicts and status.podResults of the ChangePod,
// of an order as a whole (order.verdict) in status.orderVerdicts of the
// ChangeWorkload, by compare-and-swap.
//
// A word replaces only a lower one (no verdict < pass that nobody stands behind
// < pass < fail), so doubled, late and reordered deliveries end in the same
// status. A result that a person wrote is never touched.
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
			said, err := events.ParseOrderVerdict(e)
			if err != nil {
				return functions.Permanent(err)
			}
			return recorder.RecordOrder(ctx, said, lazy{server})
		}
		said, err := events.ParseChangePodVerdict(e)
		if err != nil {
			return functions.Permanent(err)
		}
		return recorder.Record(ctx, said, lazy{server})
	}
}

// lazy reads the server's configuration only when the server has to be asked:
// most verdicts come with rules.
type lazy struct{ server *functions.ClientSource }

// Retrieve implements Retriever. Without a server nobody confirms anything.
func (l lazy) Retrieve(ctx context.Context, in altershield.Retrieve) (altershield.RetrieveAnswer, error) {
	client, _, err := l.server.Client(ctx)
	if client == nil || err != nil {
		return altershield.RetrieveAnswer{}, err
	}
	return client.Retrieve(ctx, in)
}
