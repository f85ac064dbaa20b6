package cli

import (
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/replay"
)

// storedReport is a report about a release of a Deployment, as a Kubernetes Event stores it.
func storedReport(t *testing.T, deployment string) string {
	t.Helper()
	e, err := events.New(events.ChangeWorkload{
		Verb: events.VerbSuspended, Namespace: "default", Name: deployment + "--x--1", UID: "r", Version: "1", Attempt: 1, EntryTimeUnix: 1,
		Workload: events.Workload{APIVersion: "apps/v1", Kind: "Deployment", Name: deployment},
	})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := replay.Encode(e)
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// addDeadLetter adds the Kubernetes Event about a stored report.
func (c *clients) addDeadLetter(t *testing.T, name, stored string, object corev1.ObjectReference) {
	t.Helper()
	e := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{v1alpha1.CloudEventAnnotation: stored}},
		InvolvedObject: object, Reason: v1alpha1.ReasonEventUndelivered, Message: "event could not be delivered to notify",
	}
	if _, err := c.kube.CoreV1().Events("default").Create(t.Context(), e, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func deletedRelease(name string) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "ChangeWorkload", Namespace: "default", Name: name}
}

// The release of a suspended version is deleted when a repair succeeds.
func TestAReportIsReplayedAfterItsReleaseWasDeleted(t *testing.T) {
	sleep := corev1.ObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "sleep"}
	for name, tc := range map[string]struct {
		add   func(*clients)
		names []string
		err   string
	}{
		"by its name": {func(c *clients) {
			c.addDeadLetter(t, "sleep.1", storedReport(t, "sleep"), deletedRelease("sleep--x--1"))
		}, []string{"sleep.1"}, ""},
		"if the workload of another report does not exist": {func(c *clients) {
			c.addDeadLetter(t, "sleep.1", storedReport(t, "sleep"), deletedRelease("sleep--x--1"))
			c.addDeadLetter(t, "old.1", storedReport(t, "old"), deletedRelease("old--x--1"))
		}, nil, `deployment "old" is not in namespace default`},
		// The controller says in an Event why it does not send it.
		"if it cannot be decoded": {func(c *clients) { c.addDeadLetter(t, "sleep.1", "no", sleep) }, []string{"sleep.1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, optedIn, at(2, "busybox:2"))
			tc.add(c)
			err := (&app{IOStreams: genericiooptions.IOStreams{Out: io.Discard, ErrOut: io.Discard}}).replay(t.Context(), c, tc.names)
			if (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Errorf("error is %v, want %q", err, tc.err)
			}
			w, err := c.workload(t.Context(), "deployment/sleep")
			if err != nil {
				t.Fatal(err)
			}
			if got := w.object.GetAnnotations()[v1alpha1.ReplayRequestAnnotation]; got != "sleep.1" {
				t.Errorf("the request is %q", got)
			}
		})
	}
}
