package rollback

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// crashes is the number of restarts from which a pod that was Ready counts as in a crash loop:
// a pod that is briefly Ready between crashes has not recovered.
const crashes = 3

// Pod is the part of a pod that decisions need.
type Pod struct {
	Name    string
	Created time.Time
	Ready   bool
	// Changed is the transition time of Ready; zero if unknown.
	Changed time.Time
	// Fault is why the pod does not become Ready; empty if there is no fault,
	// or the pod is only starting.
	Fault string
	// Restarts is the highest restart count of its containers.
	Restarts int32
}

// podOf converts a cached pod.
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
		out.Fault = faultOf(p)
	}
	return out
}

// faultOf returns the fault of a pod that is not Ready: the kubelet's reason, or one
// derived from the phase. A pod that runs but is not Ready yet has none: a slow
// start is not a fault.
func faultOf(p *corev1.Pod) string {
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

// since is when a pod's fault began: its creation, if it is in a crash loop
// or has no status from its kubelet yet, else the transition time of Ready.
func (p Pod) since() time.Time {
	if p.Restarts < crashes && p.Changed.After(p.Created) {
		return p.Changed
	}
	return p.Created
}
