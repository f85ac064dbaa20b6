package deadletter_test

import (
	"testing"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/replay"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
)

func finished(pod string) events.PodFinished {
	return events.PodFinished{
		Namespace: ft.Namespace, Pod: pod, PodUID: "uid-of-a", Version: ft.Version, Attempt: 1,
		Workload: events.Workload{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "sleep"},
	}
}

func suspended(entry int64) events.ChangeWorkload {
	return events.ChangeWorkload{
		Verb: events.VerbSuspended, Namespace: ft.Namespace, Name: ft.Release, UID: "release", Version: ft.Version, Attempt: 1,
		EntryTimeUnix: entry, Workload: finished("a").Workload, Message: "p99 < 5s",
	}
}

// A report is sent once, so its Kubernetes Event stores it, and reports of one object are not merged.
func TestAReportIsStoredWithItsSignature(t *testing.T) {
	other := finished("b")
	other.PodUID = "uid-of-b"
	c := ft.New(t, ft.NewRelease())
	f := newFunction(t, c)
	reports := []events.Data{finished("a"), other, suspended(1), suspended(2)}
	for range 2 {
		for _, d := range reports {
			if err := f(t.Context(), undelivered(t, d)); err != nil {
				t.Fatal(err)
			}
		}
	}
	created := kubernetesEvents(t, c)
	if len(created) != len(reports) {
		t.Fatalf("%d Kubernetes Events, want %d", len(created), len(reports))
	}
	for _, k := range created {
		e, _, err := replay.Decode(k.Annotations[v1alpha1.CloudEventAnnotation])
		if err != nil {
			t.Fatalf("%s: %v", k.Name, err)
		}
		if err := ft.EventKeys().Verify(t.Context(), e); err != nil {
			t.Errorf("%s: %v", e.ID(), err)
		}
	}
}

func TestAnUndeliverableReplayGetsAKubernetesEventOfItsOwn(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	f := newFunction(t, c)
	again := undelivered(t, suspended(1))
	again.SetExtension(eventsigning.ReplayExtension, "sleep.1")
	again = ft.SignedByController(t, again)
	for range 2 {
		if err := f(t.Context(), undelivered(t, suspended(1))); err != nil {
			t.Fatal(err)
		}
		if err := f(t.Context(), again); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(kubernetesEvents(t, c)); n != 2 {
		t.Errorf("%d Kubernetes Events, want 2", n)
	}
}

// The source is not signed, so a pod could move a signed event to another object.
func TestAnEventIsShownOnTheObjectOfItsDataOnly(t *testing.T) {
	for name, d := range map[string]events.Data{"a report": suspended(1), "a pod": finished("a"), "a wake-up": wakeUp(), "progress": progress()} {
		t.Run(name, func(t *testing.T) {
			c := ft.New(t, ft.NewRelease())
			other := wakeUp()
			other.Name = ft.BatchName(2)
			moved := undelivered(t, d)
			moved.SetSource(other.Source())
			if err := newFunction(t, c)(t.Context(), moved); err != nil {
				t.Fatal(err)
			}
			if got := kubernetesEvents(t, c); len(got) > 0 {
				t.Errorf("a Kubernetes Event on %s", got[0].InvolvedObject.Name)
			}
		})
	}
}

func progress() events.ChangeWorkload {
	d := suspended(1)
	d.Verb, d.ProgressUnix = events.VerbProgressed, 30
	return d
}
