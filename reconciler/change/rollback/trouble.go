package rollback

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// crashes is how many restarts make a crash loop of a pod that was Ready once:
// a pod that crashes fast and is Ready in between is not well again each time.
const crashes = 3

// Pod is what matters of a pod.
type Pod struct {
	Name    string
	Created time.Time
	Ready   bool
	// Changed is when Ready became what it is; zero when nobody has said.
	Changed time.Time
	// Trouble says what keeps it from coming up; empty when nothing does, or
	// when it is only on its way.
	Trouble string
	// Restarts is the highest count of its containers.
	Restarts int32
}

// podOf reads a pod of the cache.
func podOf(p *corev1.Pod) Pod {
	out := Pod{
		Name: p.Name, Created: p.CreationTimestamp.Time,
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			out.Ready, out.Changed = c.Status == corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		out.Restarts = max(out.Restarts, c.RestartCount)
	}
	if !out.Ready {
		out.Trouble = trouble(p)
	}
	return out
}

// trouble is why a pod that is not Ready is not Running: the reason that the
// kubelet gives, or what the phase tells. A pod that runs and is not Ready yet
// has none: a slow start is no fault.
func trouble(p *corev1.Pod) string {
	for _, c := range p.Status.ContainerStatuses {
		w := c.State.Waiting
		if w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return w.Reason
		}
	}
	switch p.Status.Phase {
	case corev1.PodRunning, corev1.PodSucceeded:
		return ""
	case corev1.PodFailed:
		return "Failed"
	default:
		if p.Spec.NodeName == "" {
			return "Unschedulable"
		}
		return "Pending"
	}
}

// since is when a pod's trouble began: with the pod, if it is in a crash loop or its
// kubelet has not spoken yet, else when it stopped being Ready. One that never was
// is not Ready since its kubelet has it.
func (p Pod) since() time.Time {
	if p.Restarts < crashes && p.Changed.After(p.Created) {
		return p.Changed
	}
	return p.Created
}
