package replay

import (
	"context"
	"errors"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/replay"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
)

var (
	keys = eventsigning.Keys{Current: []byte("key")}
	web  = events.Workload{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}
)

func finished(namespace string, workload events.Workload) events.PodFinished {
	return events.PodFinished{Namespace: namespace, Pod: "web-1", PodUID: "u", Workload: workload, Version: "1", Attempt: 1}
}

// letter returns the Kubernetes Event of an undelivered event that was signed with the keys.
func letter(t *testing.T, d events.Data, keys eventsigning.Keys) *corev1.Event {
	t.Helper()
	e, err := events.New(d)
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Sign(t.Context(), &e); err != nil {
		t.Fatal(err)
	}
	stored, err := replay.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web.1", UID: "k", Annotations: map[string]string{v1alpha1.CloudEventAnnotation: stored}},
		Reason:     v1alpha1.ReasonEventUndelivered,
	}
}

func annotated(k *corev1.Event, key, value string) *corev1.Event {
	k.Annotations[key] = value
	return k
}

func TestOnlyEventsOfTheControllerAboutTheWorkloadAreReplayed(t *testing.T) {
	api := web
	api.Name = "api"
	otherReason := letter(t, finished("default", web), keys)
	otherReason.Reason = "Other"
	for name, tc := range map[string]struct {
		letter *corev1.Event
		want   Action
	}{
		"a report about the workload":    {letter(t, finished("default", web), keys), Send},
		"signed with the previous key":   {letter(t, finished("default", web), eventsigning.Keys{Current: []byte("previous")}), Send},
		"replayed before":                {annotated(letter(t, finished("default", web), keys), v1alpha1.ReplayedAnnotation, "2026-02-03T04:05:06Z"), Done},
		"a Kubernetes Event that is not": {nil, Drop},
		"another reason":                 {otherReason, Drop},
		"a wake-up, which is not stored": {&corev1.Event{Reason: v1alpha1.ReasonEventUndelivered}, Drop},
		"malformed":                      {annotated(letter(t, finished("default", web), keys), v1alpha1.CloudEventAnnotation, "no"), Drop},
		"signed by somebody else":        {letter(t, finished("default", web), eventsigning.Keys{Current: []byte("other")}), Drop},
		"about another workload":         {letter(t, finished("default", api), keys), Drop},
		"about another namespace":        {letter(t, finished("other", web), keys), Drop},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Decide(t.Context(), tc.letter, "default", web, eventsigning.Keys{Current: keys.Current, Previous: []byte("previous")})
			if err != nil || got.Action != tc.want || (got.Message != "") != (tc.want == Drop) {
				t.Errorf("got %+v, %v, want %s", got, err, tc.want)
			}
		})
	}
}

type unreadable struct{}

func (unreadable) Verify(context.Context, cloudevents.Event) error { return errors.New("no key yet") }

func TestAKeyThatCannotBeReadDropsNoReplay(t *testing.T) {
	if got, err := Decide(t.Context(), letter(t, finished("default", web), keys), "default", web, unreadable{}); err == nil {
		t.Errorf("decided %+v", got)
	}
}
