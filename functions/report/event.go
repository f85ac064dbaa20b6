package report

import (
	"fmt"

	"github.com/cloudevents/sdk-go/v2/event"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
)

// report has the fields of an event that the server gets.
type report struct {
	namespace, changeWorkload string
	// ofPod means that the event is about a pod of the release.
	ofPod bool
	// uid is empty if the event does not have it. The attempt then identifies the
	// release among those of the same name.
	uid     types.UID
	attempt int64
	// orderID and appName are those of the release; empty if the event does not have them.
	orderID, appName string
	workload         events.Workload
	// summary is the end of the title, after the workload.
	summary string
	// id is the id of the event, so that a fact is recorded once.
	id   string
	data any
}

func parse(e event.Event) (report, error) {
	if e.Type() == events.TypePodFinished {
		d, err := events.ParsePodFinished(e)
		return report{
			namespace: d.Namespace, changeWorkload: v1alpha1.ChangeWorkloadName(d.Workload.Name, d.Version),
			ofPod: true, attempt: d.Attempt, workload: d.Workload, summary: "pod " + d.Pod + " is ready", id: e.ID(), data: d,
		}, err
	}
	d, err := events.ParseChangeWorkload(e)
	summary := string(d.Verb)
	if d.Message != "" {
		summary += ": " + d.Message
	}
	return report{
		namespace: d.Namespace, changeWorkload: d.Name, uid: d.UID, attempt: d.Attempt,
		orderID: d.OrderID, appName: d.AppName, workload: d.Workload,
		summary: summary, id: e.ID(), data: d,
	}, err
}

// matches reports whether the event is about the release.
func (r report) matches(w *v1alpha1.ChangeWorkload) bool {
	return r.attempt == w.Spec.Attempt && (r.uid == "" || r.uid == w.UID)
}

func (r report) submitEvent() altershield.SubmitEvent {
	name := r.namespace + "/" + r.workload.Name
	return altershield.SubmitEvent{
		OrderID:  altershield.EventOrderID(r.orderID, r.id),
		Title:    fmt.Sprintf("%s %s: %s", r.workload.Kind, name, r.summary),
		Apps:     []string{r.appName},
		Contents: []altershield.Content{{Type: r.workload.Kind, Name: name}},
		Params:   r.data,
	}
}
