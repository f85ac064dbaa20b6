package deadletter_test

import (
	"strings"
	"testing"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions/deadletter"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
)

// A function answers a forged event with a permanent error, so the Broker sends it here.
func TestAForgedDeadLetterOfTheControllerIsNotShown(t *testing.T) {
	for _, eventType := range events.Types() {
		if !strings.Contains(eventType, ".changeworkload.") && !strings.Contains(eventType, ".ready.") && eventType != events.TypePodFinished {
			continue
		}
		for name, keys := range map[string]eventsigning.Keys{"without a signature": {}, "with the key of verdicts": ft.Keys()} {
			t.Run(eventType+" "+name, func(t *testing.T) {
				c := ft.New(t, ft.NewRelease())
				e := undelivered(t, wakeUp())
				e.SetType(eventType)
				e.SetExtension(eventsigning.Extension, nil)
				if len(keys.Current) > 0 {
					_ = keys.Sign(t.Context(), &e)
				}
				if err := newFunction(t, c)(t.Context(), e); err != nil {
					t.Errorf("the Broker would repeat it: %v", err)
				}
				if got := kubernetesEvents(t, c); len(got) > 0 {
					t.Errorf("created %s", got[0].Message)
				}
			})
		}
	}
}

func TestADeadLetterThatWeDidNotSignIsNotStored(t *testing.T) {
	c := ft.New(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	e := undelivered(t, fail())
	e.SetExtension(eventsigning.Extension, nil)
	if err := newFunction(t, c)(t.Context(), e); err != nil {
		t.Errorf("the Broker would repeat it: %v", err)
	}
	if got := c.ChangeWorkload(ft.Release).Status.Inbox; len(got) > 0 || c.Patches() != 0 {
		t.Errorf("stored %v", got)
	}
}

// A dead letter may be older than the key.
func TestADeadLetterOutlivesARotationOfTheKey(t *testing.T) {
	c := ft.New(t, ft.NewRelease(), ft.NewBatch(1, []string{"a"}, ft.Started("n", 0)))
	rotated := deadletter.Verifiers{Verdicts: ft.Rotated(ft.Keys()), Events: ft.Rotated(ft.EventKeys())}
	if err := newFunctionWith(t, c, rotated)(t.Context(), undelivered(t, fail())); err != nil {
		t.Fatal(err)
	}
	if got := c.ChangeWorkload(ft.Release).Status.Inbox; len(got) != 1 {
		t.Errorf("inbox %v, want the verdict", got)
	}
}
