package report

import (
	"fmt"

	"github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
)

// about is what an event says, as far as a record needs it.
type about struct {
	namespace, changeWorkload string
	// ofPod says that the event is about a pod of the release.
	ofPod bool
	// uid is empty where the event does not know it; then attempt tells the
	// release from another one of the same name.
	uid     types.UID
	attempt int64
	// what completes a title that begins with the workload.
	what string
	// id is the event's: the same fact is recorded once.
	id   string
	data any
}

func parse(e event.Event) (about, error) {
	if e.Type() == events.TypePodFinished {
		d, err := events.ParsePodFinished(e)
		return about{
			namespace: d.Namespace, changeWorkload: v1alpha1.ChangeWorkloadName(d.Workload.Name, d.Version),
			ofPod: true, attempt: d.Attempt, what: "pod " + d.Pod + " is ready", id: e.ID(), data: d,
		}, err
	}
	d, err := events.ParseChangeWorkload(e)
	what := string(d.Verb)
	if d.Message != "" {
		what += ": " + d.Message
	}
	return about{
		namespace: d.Namespace, changeWorkload: d.Name, uid: d.UID, attempt: d.Attempt,
		what: what, id: e.ID(), data: d,
	}, err
}

func (a about) isAbout(w *v1alpha1.ChangeWorkload) bool {
	return a.attempt == w.Spec.Attempt && (a.uid == "" || a.uid == w.UID)
}

func (a about) record(w *v1alpha1.ChangeWorkload) altershield.SubmitEvent {
	name := w.Namespace + "/" + w.Spec.WorkloadRef.Name
	return altershield.SubmitEvent{
		OrderID:  altershield.EventOrderID(w.Spec.OrderID, a.id),
		Title:    fmt.Sprintf("%s %s: %s", w.Spec.WorkloadRef.Kind, name, a.what),
		Apps:     []string{w.Spec.AppName},
		Contents: []altershield.Content{{Type: w.Spec.WorkloadRef.Kind, Name: name}},
		Params:   a.data,
	}
}
