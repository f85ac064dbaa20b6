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
