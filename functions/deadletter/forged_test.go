package deadletter_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	ft "github.com/breakwater-dev/breakwater/functions/functionstest"
)

// stranger is text of a sender that can read ChangePods.
const stranger = "stranger"

// A pod can send a verdict of a judge, whose signature the function does not verify. Otherwise
// any pod could fill the API server with Kubernetes Events.
func TestAForgedDeadLetterCreatesNoEventOfItsOwnType(t *testing.T) {
	c := ft.New(t, ft.NewRelease())
	f := newFunction(t, c)
	e := undelivered(t, events.JudgeVerdict{
		Namespace: ft.Namespace, Name: ft.BatchName(1), UID: "batch-1", Version: ft.Version, Attempt: 1, Judge: "canary",
		Stage: v1alpha1.StagePost, Verdict: "pass", Time: metav1.NewMicroTime(ft.Now()),
	})
	for n := range 5 {
		e.SetID(fmt.Sprintf("%s-%d", stranger, n))
		e.SetExtension("knativeerrordest", "http://"+stranger)
		e.SetExtension("knativeerrorcode", stranger)
		for _, source := range []string{wakeUp().Source(), strings.TrimPrefix(wakeUp().Source(), "/")} {
			e.SetSource(source)
			for _, eventType := range []string{events.TypeChangePodVerdict, fmt.Sprintf("dev.breakwater.%s.%d", stranger, n)} {
				e.SetType(eventType)
				if err := f(t.Context(), e); err != nil {
					t.Error(err)
				}
			}
		}
	}
	created := kubernetesEvents(t, c)
	if len(created) != 1 {
		t.Errorf("%d Kubernetes Events, want 1", len(created))
	}
	for _, k := range created {
		if strings.Contains(k.Message, stranger) {
			t.Fatalf("message is %q", k.Message)
		}
	}
}

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
