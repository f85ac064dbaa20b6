package deadletter_test

import (
	"strings"
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions/deadletter"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
)

// A function answers a forged event with a permanent error, so the Broker sends it here. Any pod
// can also send one directly.
func TestADeadLetterThatTheControllerDidNotSignIsNotShown(t *testing.T) {
	forged := map[string]event.Event{"verdict of another judge": undelivered(t, events.JudgeVerdict{
		Namespace: ft.Namespace, Name: ft.BatchName(1), UID: "batch-1", Version: ft.Version, Attempt: 1, Judge: "canary",
		Stage: v1alpha1.StagePost, Verdict: "pass", Time: metav1.NewMicroTime(ft.Now()),
	})}
	for _, eventType := range append(events.Types(), "dev.breakwater.stranger.v1") {
		e := undelivered(t, wakeUp())
		e.SetType(eventType)
		e.SetExtension(eventsigning.Extension, nil)
		forged[eventType+" without a signature"] = e
		if !strings.Contains(eventType, ".verdict.") {
			forged[eventType+" with the key of verdicts"] = ft.SignedVerdict(t, e.Clone())
		}
	}
	for name, e := range forged {
		t.Run(name, func(t *testing.T) {
			c := ft.New(t, ft.NewRelease())
			if err := newFunction(t, c)(t.Context(), e); err != nil {
				t.Errorf("the Broker would repeat it: %v", err)
			}
			if got := kubernetesEvents(t, c); len(got) > 0 {
				t.Errorf("created %s", got[0].Message)
			}
		})
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
