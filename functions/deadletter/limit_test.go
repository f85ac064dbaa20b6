package deadletter_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"

	"github.com/breakwater-dev/breakwater/events"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
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

func TestAnEventThatCouldNotBeShownIsShownWhenItIsRepeated(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	failed := false
	c.Kube.PrependReactor("create", "events", func(k8stesting.Action) (bool, runtime.Object, error) {
		first := !failed
		failed = true
		return first, nil, apierrors.NewInternalError(errors.New("etcd is unavailable"))
	})
	f := newFunction(t, c)
	for range 2 {
		if err := f(t.Context(), undelivered(t, wakeUp())); err != nil {
			t.Error(err)
		}
	}
	if n := len(kubernetesEvents(t, c)); n != 1 {
		t.Errorf("%d Kubernetes Events, want 1", n)
	}
}

// A user who may read Kubernetes Events sees a stored report with its signature, and could send it again and again.
func TestACapturedReportTakesNothingFromTheLimit(t *testing.T) {
	gone := suspended(1)
	gone.Name = "gone"
	for name, tc := range map[string]struct {
		captured events.Data
		replays  bool
		want     int
	}{
		"as it is":               {suspended(1), false, 2},
		"as replays":             {suspended(1), true, 1},
		"about a deleted object": {gone, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c := ft.New(t, ft.NewRelease())
			f := newFunction(t, c)
			for n := range 100 {
				e := undelivered(t, tc.captured)
				if tc.replays {
					e.SetExtension(eventsigning.ReplayExtension, fmt.Sprintf("sleep.%d", n))
				}
				if err := f(t.Context(), e); err != nil {
					t.Error(err)
				}
			}
			if err := f(t.Context(), undelivered(t, suspended(2))); err != nil {
				t.Error(err)
			}
			if n := len(kubernetesEvents(t, c)); n != tc.want {
				t.Errorf("%d Kubernetes Events, want %d, with that of the other report", n, tc.want)
			}
		})
	}
}
