package judge

import (
	"maps"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/evaluate"
)

// newSince returns, by name, since when pods that match newPods are of the new version. A pod of a
// StatefulSet has the name of the pod that it replaced, whose samples are of the old version.
func newSince(pods []corev1.Pod, newPods []string, start time.Time) map[string]metav1.Time {
	out := map[string]metav1.Time{}
	for i := range pods {
		if slices.Contains(newPods, regexp.QuoteMeta(pods[i].Name)) {
			out[pods[i].Name] = sinceOf(&pods[i], start)
		}
	}
	return out
}

// sinceOf returns when a new pod began: its creation or, if it is older than the compared time, the
// last start of a container, because it may have been updated in place.
func sinceOf(pod *corev1.Pod, start time.Time) metav1.Time {
	since := pod.CreationTimestamp
	if since.After(start.Add(-evaluate.Before)) {
		return since
	}
	for _, c := range pod.Status.ContainerStatuses {
		if running := c.State.Running; running != nil && since.Before(&running.StartedAt) {
			since = running.StartedAt
		}
		if ended := c.LastTerminationState.Terminated; ended != nil && since.Before(&ended.StartedAt) {
			since = ended.StartedAt
		}
	}
	return since
}

// newSinceWith returns the times of this look, and those of the record for new pods that were deleted
// since the look before.
func (r release) newSinceWith(record *judgev1alpha1.Record) map[string]metav1.Time {
	out := map[string]metav1.Time{}
	if record != nil {
		for pod, since := range record.Target.NewSince {
			if slices.Contains(r.newPods, regexp.QuoteMeta(pod)) {
				out[pod] = since
			}
		}
	}
	maps.Copy(out, r.newSince)
	return out
}
