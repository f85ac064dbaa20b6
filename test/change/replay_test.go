//go:build controlplane

package change

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	"go.opentelemetry.io/otel/metric/noop"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions/deadletter"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/e2e/impersonation"
)

// A control plane has no Broker, so the request of an event of the controller stays. The request
// of an event that the controller did not sign is dropped.
func TestThePluginRequestsTheReplayOfAReport(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.create(t, workload.Deployment, builder.Deployment("web", 1, builder.Simulated, builder.Release("one")))
	w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)
	report, wakeUp := w.undelivered(t)

	f.mustPlugin(t, 0, []string{report, "Possible", wakeUp}, "deadletters")
	f.mustPlugin(t, 1, []string{"is not replayed"}, "deadletters", "replay", wakeUp)
	f.mustPlugin(t, 1, []string{"no dead letter has the name"}, "deadletters", "replay", "other")
	f.mustPlugin(t, 1, []string{"or --all"}, "deadletters", "replay")
	f.mustPlugin(t, 0, []string{report + ": replay requested"}, "deadletters", "replay", "--all")
	f.mustPlugin(t, 1, []string{"another replay request"}, "deadletters", "replay", report)

	forged := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.CloudEventAnnotation, w.forged(t))
	kubectl(t, "", "patch", "event", report, "-n", f.namespace, "--type", "merge", "-p", forged)
	w.awaitEvent(t, v1alpha1.ReasonReplayDropped)
	w.awaitWorkload(t, "has no replay request", func(live *workload.Workload) bool {
		return live.Annotations[v1alpha1.ReplayRequestAnnotation] == ""
	})
	mark := fmt.Sprintf(`{"metadata":{"annotations":{%q:"2026-02-03T04:05:06Z"}}}`, v1alpha1.ReplayedAnnotation)
	impersonation.Expect(t, "controller", "", "patch", "event", report, "-n", f.namespace, "--type", "merge", "-p", mark)
	kubectl(t, "", "patch", "event", report, "-n", f.namespace, "--type", "merge", "-p", mark) // the above is a dry run
	f.mustPlugin(t, 0, []string{report + ": replayed at 2026-02-03T04:05:06Z"}, "deadletters", "replay", report)
}

// undelivered passes a report and a wake-up to function deadletter. It returns the names of
// their Kubernetes Events.
func (w target) undelivered(t *testing.T) (report, wakeUp string) {
	t.Helper()
	keys := eventsigning.NewEventStore(w.Kube.CoreV1(), clock.RealClock{})
	handle := deadletter.New(w.Breakwater, w.Kube, w.Dynamic, deadletter.Verifiers{Verdicts: keys, Events: keys}, clock.RealClock{}, noop.Meter{})
	c, err := w.release(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []events.Data{w.finished(t), events.OrderReady{
		Namespace: w.namespace, Name: c.Name, UID: c.UID, Version: c.Spec.Reversion, Attempt: c.Spec.Attempt, Step: v1alpha1.OrderStepClose,
	}} {
		e := newEvent(t, d)
		await(t, "the key of the controller", func(ctx context.Context) error { return keys.Sign(ctx, &e) })
		if err := handle(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	list, err := w.Kube.CoreV1().Events(w.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + v1alpha1.ReasonEventUndelivered})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range list.Items {
		if k.Annotations[v1alpha1.CloudEventAnnotation] != "" {
			report = k.Name
		} else {
			wakeUp = k.Name
		}
	}
	if report == "" || wakeUp == "" {
		t.Fatal(errors.New("a Kubernetes Event is missing"))
	}
	return report, wakeUp
}

func (w target) finished(t *testing.T) events.PodFinished {
	t.Helper()
	c, err := w.release(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return events.PodFinished{
		Namespace: w.namespace, Pod: "web-1", PodUID: "u", Version: c.Spec.Reversion, Attempt: c.Spec.Attempt,
		Workload: events.Workload{APIVersion: w.kind.GroupVersion().String(), Kind: w.kind.Kind, Name: "web"},
	}
}

// forged returns a stored report with the signature of another key.
func (w target) forged(t *testing.T) string {
	t.Helper()
	e := newEvent(t, w.finished(t))
	if err := (eventsigning.Keys{Current: []byte("another key")}).Sign(t.Context(), &e); err != nil {
		t.Fatal(err)
	}
	raw, err := e.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func newEvent(t *testing.T, d events.Data) event.Event {
	t.Helper()
	e, err := events.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
