// Package report is the function that reports releases to the server: it submits
// a report of each finished pod, and of each event of a release: its states and its progress.
// The server neither checks the reports nor sends callbacks for them, and nothing
// in the cluster depends on them.
package report

import (
	"context"
	"errors"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"go.opentelemetry.io/otel/metric"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/internal/metrics"
)

// callTimeout limits the calls of one report. With a cold start, it is within the timeout of the Trigger.
const callTimeout = 8 * time.Second

// resultReleaseDeleted counts an event that does not have its order and whose release was deleted, so that it
// cannot be reported.
const resultReleaseDeleted = "ReleaseDeleted"

type function struct {
	releases *functions.ReleaseReader
	server   *functions.ClientSource
	reported metrics.Counter
}

// New returns the function. It reports only events that verifier accepts as sent by the
// controller, because it sends their text to the server in a request signed with our token.
func New(client versioned.Interface, server *functions.ClientSource, verifier functions.Verifier, clock clock.PassiveClock, meter metric.Meter) functions.Function {
	f := &function{
		releases: functions.NewReleaseReader(client, clock), server: server,
		reported: metrics.NewCounter(meter, "breakwater_reports_total"),
	}
	return functions.Authenticated(verifier, f.handle)
}

// handle submits one report. A failed call is only counted and logged: the client
// has already retried what can be retried, reports do not depend on each other,
// and retries of the Broker would delay other events.
func (f *function) handle(ctx context.Context, e event.Event) error {
	r, err := parse(e)
	if err != nil {
		return functions.Permanent(err)
	}
	server, _, err := f.server.Client(ctx)
	if err != nil || server == nil {
		return err
	}
	if r.attempt == 0 { // a baseline
		return nil
	}
	if r.orderID == "" {
		release, err := f.release(ctx, r)
		if apierrors.IsNotFound(err) || err == nil && !r.matches(release) {
			logging.FromContext(ctx).Warnw("Could not report an event because its release was deleted",
				"id", r.id, "changeWorkload", r.namespace+"/"+r.changeWorkload)
			f.reported.Add(ctx, 1, resultReleaseDeleted)
			return nil
		}
		if err != nil {
			return err
		}
		r.orderID, r.appName = release.Spec.OrderID, release.Spec.AppName
	}
	calling, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = server.SubmitEvent(calling, r.submitEvent())
	if err != nil {
		logging.FromContext(ctx).Warnw("Could not submit a report to the server", "error", err)
	}
	f.reported.Add(ctx, 1, result(err))
	return nil
}

// release reads the release of an event without its order. For an event about a pod the cached
// release suffices; an event of an earlier version reports a change of the release's state.
func (f *function) release(ctx context.Context, r report) (*v1alpha1.ChangeWorkload, error) {
	if r.ofPod {
		release, cached, err := f.releases.Recent(ctx, r.namespace, r.changeWorkload)
		if err != nil || !cached || r.matches(release) {
			return release, err
		}
	}
	return f.releases.Live(ctx, r.namespace, r.changeWorkload)
}

func result(err error) string {
	switch {
	case err == nil:
		return "recorded"
	case errors.As(err, new(*altershield.CallError)):
		return v1alpha1.ReasonServerUnreachable
	default:
		return v1alpha1.ReasonServerRejected
	}
}
