// Package verdict is the function that stores verdicts, by compare-and-swap: of the
// server on a batch (changepod.verdict) in status.verdicts and status.podResults of the
// ChangePod, of another judge in its status.judges, of the server on an order
// (order.verdict) in status.orderVerdicts of the ChangeWorkload.
//
// A verdict replaces only one of a lower precedence (no verdict < pass without rules < pass <
// fail), so duplicate, late and reordered deliveries lead to the same status. A result that a
// person wrote is never replaced.
//
// It also receives order.ready, and ignores it: the event only starts a pod of the function, which may
// be scaled to zero, before the first verdict arrives.
package verdict

import (
	"context"
	"errors"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
)

// JudgeVerifier verifies the signature of an event with the key of a judge;
// *eventsigning.JudgeKeys implements it.
type JudgeVerifier interface {
	VerifyJudge(ctx context.Context, judge string, e event.Event) error
}

// New returns the function. It stores only verdicts of the server that verifier accepts,
// and those of another judge that judges accepts as signed by that judge.
func New(recorder *Recorder, server *functions.ClientSource, verifier functions.Verifier, judges JudgeVerifier) functions.Function {
	return func(ctx context.Context, e event.Event) error {
		if e.Type() == events.TypeOrderReady {
			return nil // the function runs now
		}
		if judge := events.JudgeOf(e); judge != "" {
			if err := functions.VerificationError(judges.VerifyJudge(ctx, judge, e)); err != nil {
				return err
			}
			received, err := events.ParseJudgeVerdict(e)
			if err != nil {
				return functions.Permanent(err)
			}
			return recorder.RecordJudge(ctx, received)
		}
		if err := functions.VerificationError(verifier.Verify(ctx, e)); err != nil {
			return err
		}
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

// errNoServer means that no server is configured.
var errNoServer = errors.New("no AlterShield server is configured")

// Retrieve implements Retriever.
func (l lazyRetriever) Retrieve(ctx context.Context, in altershield.Retrieve) (altershield.RetrieveAnswer, error) {
	client, _, err := l.server.Client(ctx)
	if err == nil && client == nil {
		err = errNoServer
	}
	if err != nil {
		return altershield.RetrieveAnswer{}, err
	}
	return client.Retrieve(ctx, in)
}
