package deadletter_test

import (
	"testing"

	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

func TestDeadLettersCreateFewKubernetesEventsInAShortTime(t *testing.T) {
	const burst = 50
	c := ft.New(t, ft.NewRelease())
	f := newFunction(t, c)
	for n := range maxBatches {
		d := wakeUp()
		d.Name = ft.BatchName(n + 1)
		if err := f(t.Context(), undelivered(t, d)); err != nil {
			t.Error(err)
		}
	}
	if n := len(kubernetesEvents(t, c)); n != burst {
		t.Errorf("%d Kubernetes Events, want %d", n, burst)
	}
}

// The controller repeats wake-ups, but not reports.
func TestARepeatedWakeUpTakesNothingFromTheLimit(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	f := newFunction(t, c)
	for range 100 {
		if err := f(t.Context(), undelivered(t, wakeUp())); err != nil {
			t.Error(err)
		}
	}
	if err := f(t.Context(), undelivered(t, suspended(1))); err != nil {
		t.Error(err)
	}
	if n := len(kubernetesEvents(t, c)); n != 2 {
		t.Errorf("%d Kubernetes Events, want that of the wake-up and that of the report", n)
	}
}
