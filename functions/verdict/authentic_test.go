package verdict_test

import (
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/functions/verdict"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
)

// A pod that can read ChangePods and reach the Broker can send an event that is correct
// in every field.
func TestAVerdictThatWeDidNotSignHasNoEffect(t *testing.T) {
	for name, forge := range map[string]func(*event.Event){
		"without a signature": func(e *event.Event) { e.SetExtension(eventsigning.Extension, nil) },
		"with a guessed key": func(e *event.Event) {
			_ = eventsigning.Keys{Current: []byte("guessed")}.Sign(t.Context(), e)
		},
		"with the signature of another verdict": func(e *event.Event) {
			e.SetExtension(eventsigning.Extension, verdictOf(t, v1alpha1.StagePost, "fail", "n").Extensions()[eventsigning.Extension])
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, function := newFunction(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
			e := verdictOf(t, v1alpha1.StagePost, "pass", "n")
			forge(&e)
			if got := functions.ResultOf(function(t.Context(), e)); got != functions.ResultPermanent {
				t.Errorf("result %s", got)
			}
			if c.Patches() != 0 {
				t.Error("the verdict was stored")
			}
		})
	}
}

// The event was on its way, or stored by the Broker, while the key was replaced.
func TestAVerdictOutlivesARotationOfTheKey(t *testing.T) {
	c := ft.New(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	server := ft.NewServerDouble(t, c, "")
	function := verdict.New(verdict.NewRecorder(c.Change, server.Clock, noop.Meter{}), server.Clients, ft.Rotated(ft.Keys()), nil)
	if err := function(t.Context(), verdictOf(t, v1alpha1.StagePre, "fail", "n")); err != nil {
		t.Fatal(err)
	}
	if got := c.ChangePod(ft.BatchName(1)).Status.Verdicts; len(got) != 1 {
		t.Errorf("verdicts %v, want one", got)
	}
}

// Function submit handles the event. Here its arrival starts the function, so it must not be
// rejected or retried.
func TestAnOrderThatIsReadyChangesNothing(t *testing.T) {
	c, _, function := newFunction(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	e, err := events.New(events.OrderReady{
		Namespace: ft.Namespace, Name: "web", UID: "u", Version: "v1", Attempt: 1, Step: v1alpha1.OrderStepStart,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := function(t.Context(), e); err != nil {
		t.Error(err)
	}
	if c.Patches() != 0 {
		t.Error("it wrote a status")
	}
}
