package judge

import (
	"maps"
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
)

// newSince maps the name of a new pod to the time from which its samples belong to the new version. It
// has only pods that the workload owns directly. A pod of a StatefulSet has the name of the pod that it
// replaced, whose samples belong to the old version.
type newSince struct {
	// created has the creation time of each pod that was created during the release. For a kind that
	// replaces pods it has every matching pod, also one that is older than the ChangeWorkload: if the
	// webhook missed the release, the ChangeWorkload is created after the pods.
	created map[string]metav1.Time
	// restarted has the first known start of a container during the release, of pods that are older:
	// these were updated in place. A pod of which no container was restarted has no time, for example
	// if only labels changed. Its samples before the start of the compared time count as old, those
	// after it as new.
	restarted map[string]metav1.Time
}

// newSinceOf returns the times of pods that match newPods. admitted is the time when the release was
// admitted. It is zero for a kind that replaces pods.
func newSinceOf(pods []*corev1.Pod, newPods []string, admitted metav1.Time) newSince {
	out := newSince{created: map[string]metav1.Time{}, restarted: map[string]metav1.Time{}}
	for _, pod := range pods {
		if !slices.Contains(newPods, regexp.QuoteMeta(pod.Name)) {
			continue
		}
		if !pod.CreationTimestamp.Before(&admitted) {
			out.created[pod.Name] = pod.CreationTimestamp
		} else if start, ok := firstStart(pod, admitted); ok {
			out.restarted[pod.Name] = start
		}
	}
	return out
}

// firstStart returns the first start of a container since a time. The status of a pod has the last two
// starts of each container.
func firstStart(pod *corev1.Pod, since metav1.Time) (first metav1.Time, ok bool) {
	for _, c := range pod.Status.ContainerStatuses {
		for _, state := range []corev1.ContainerState{c.State, c.LastTerminationState} {
			start := startOfContainer(state)
			if !start.Before(&since) && (!ok || start.Before(&first)) {
				first, ok = start, true
			}
		}
	}
	return first, ok
}

// startOfContainer returns when a container started, zero if it did not.
func startOfContainer(s corev1.ContainerState) metav1.Time {
	switch {
	case s.Running != nil:
		return s.Running.StartedAt
	case s.Terminated != nil:
		return s.Terminated.StartedAt
	default:
		return metav1.Time{}
	}
}

// with returns the times of this look, and those of the record for pods that match newPods: new pods
// that were deleted since the look before, and earlier starts of containers.
func (n newSince) with(record *judgev1alpha1.Record, newPods []string) map[string]metav1.Time {
	out := map[string]metav1.Time{}
	maps.Copy(out, n.restarted)
	if record != nil {
		for pod, since := range record.Target.NewSince {
			start, known := out[pod]
			if slices.Contains(newPods, regexp.QuoteMeta(pod)) && (!known || since.Before(&start)) {
				out[pod] = since
			}
		}
	}
	maps.Copy(out, n.created)
	return out
}
