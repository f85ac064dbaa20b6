// Package report is the function that keeps the server informed of releases:
// each pod that is finished and each change of a ChangeWorkload's state becomes
// a record there. The server checks nothing and calls nothing back for them,
// and nothing in the cluster depends on them.
package report

import (
	"context"
	"errors"

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

type function struct {
	releases *functions.ReleaseReader
	server   *functions.ClientSource
	reported metrics.Counter
}

// New returns the function.
func New(client versioned.Interface, server *functions.ClientSource, clock clock.PassiveClock, meter metric.Meter) functions.Function {
	return (&function{
		releases: functions.NewReleaseReader(client, clock), server: server,
		reported: metrics.NewCounter(meter, "breakwater_reports_total"),
	}).handle
}

// handle sends one record. A call that fails is counted and the event is
// answered as done: the client has tried for its whole deadline, records have
// no order that a gap would break, and a Broker that repeats them would only
// hold up the events behind.
func (f *function) handle(ctx context.Context, e event.Event) error {
	about, err := parse(e)
	if err != nil {
		return functions.Permanent(err)
	}
	server, _, err := f.server.Client(ctx)
	if err != nil || server == nil {
		return err
	}
	workload, err := f.release(ctx, about)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if !about.isAbout(workload) || workload.Spec.Attempt == 0 {
		return nil
	}
	_, err = server.SubmitEvent(ctx, about.record(workload))
	if err != nil {
		logging.FromContext(ctx).Warnw("a record did not reach the server", "error", err)
	}
	f.reported.Add(ctx, 1, result(err))
	return nil
}

// release reads what the event is about. Of a pod one needs to know no more than
// which release it is; a release's own event tells of a change of its state.
func (f *function) release(ctx context.Context, a about) (*v1alpha1.ChangeWorkload, error) {
	if a.ofPod {
		workload, recent, err := f.releases.Cached(ctx, a.namespace, a.changeWorkload)
		if err != nil || !recent || a.isAbout(workload) {
			return workload, err
		}
	}
	return f.releases.Live(ctx, a.namespace, a.changeWorkload)
}

func result(err error) string {
	var transport *altershield.TransportError
	switch {
	case err == nil:
		return "recorded"
	case errors.As(err, &transport):
		return v1alpha1.ReasonServerUnreachable
	default:
		return v1alpha1.ReasonServerRejected
	}
}
