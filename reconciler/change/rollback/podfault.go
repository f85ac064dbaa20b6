package rollback

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// crashes is the number of restarts from which a pod that was Ready counts as in a crash loop:
// a pod that is briefly Ready between crashes has not recovered.
const crashes = 3

// Faults of a pod that waits for its node.
const (
	// unschedulable: the pod has no node.
	unschedulable = "Unschedulable"
	// pending: its node has not started its containers, for example because a volume is not attached.
	pending = "Pending"
)

// Pod is the part of a pod that decisions need.
type Pod struct {
	Name    string
	Created time.Time
	Ready   bool
	// Ended: the pod was evicted or rejected by its node, or its containers ended. Another one replaces it.
	Ended bool
	// Changed is the transition time of Ready or, if it is later, the time when the pod got its node or the end of the last
	// init container; zero if unknown.
	Changed time.Time
	// Fault is why the pod does not become Ready; empty if there is no fault,
	// or the pod is only starting or gated.
	Fault string
	// Restarts is the highest restart count of its containers, without init containers that succeeded.
	Restarts int32
}

// podOf converts a cached pod.
func podOf(p *corev1.Pod) Pod {
	out := Pod{
		Name: p.Name, Created: p.CreationTimestamp.Time, Ended: workload.PodEnded(p),
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			out.Ready, out.Changed = c.Status == corev1.ConditionTrue && !out.Ended, c.LastTransitionTime.Time
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		out.Restarts = max(out.Restarts, c.RestartCount)
	}
	if !out.Ready {
		out.addNode(p.Status.Conditions)
		out.addInitContainers(p.Status.InitContainerStatuses)
		out.Fault = faultOf(p)
	}
	return out
}

// addNode adds when a pod that is not Ready got its node, which scheduling gates may have delayed for hours.
func (p *Pod) addNode(conditions []corev1.PodCondition) {
	for _, c := range conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && c.LastTransitionTime.After(p.Changed) {
			p.Changed = c.LastTransitionTime.Time
		}
	}
}

// addInitContainers adds the init containers of a pod that is not Ready: the pod makes progress as long as
// they end one after the other, and a failing one is in a crash loop like any container.
func (p *Pod) addInitContainers(statuses []corev1.ContainerStatus) {
	for _, c := range statuses {
		if c.Ready && c.State.Terminated == nil {
			continue // a sidecar that runs
		}
		if !c.Ready {
			p.Restarts = max(p.Restarts, c.RestartCount)
		}
		for _, state := range []corev1.ContainerState{c.State, c.LastTerminationState} {
			if t := state.Terminated; t != nil && t.FinishedAt.After(p.Changed) {
				p.Changed = t.FinishedAt.Time
			}
		}
	}
}

// faultOf returns the fault of a pod that is not Ready: the kubelet's reason, or one
// derived from the phase. A pod whose containers and sidecars run but that is not Ready yet has none, and neither has a
// pod whose init container runs: a slow start is not a fault. Neither has a gated pod, whose wait is deliberate.
func faultOf(p *corev1.Pod) string {
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		w := c.State.Waiting
		if w != nil && w.Reason != "" && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
			return w.Reason
		}
	}
	switch phase := p.Status.Phase; {
	case phase == corev1.PodRunning, phase == corev1.PodSucceeded:
		return ""
	case phase == corev1.PodFailed:
		return "Failed"
	case slices.ContainsFunc(p.Status.Conditions, isGated):
		return ""
	case p.Spec.NodeName == "":
		return unschedulable
	case slices.ContainsFunc(p.Status.InitContainerStatuses, isInitializing):
		return ""
	default:
		return pending
	}
}

// isGated reports whether the condition says that the pod has scheduling gates, such as those of Kueue and Keptn, or had them until now: the
// scheduler has not tried yet to find a node.
func isGated(c corev1.PodCondition) bool { return c.Reason == corev1.PodReasonSchedulingGated }

// isInitializing reports whether an init container runs and other containers wait for it. A sidecar that is Ready
// keeps no other container waiting.
func isInitializing(c corev1.ContainerStatus) bool { return c.State.Running != nil && !c.Ready }

// waitsForNode reports whether the pod has no node, or its node has not started its containers.
func (p Pod) waitsForNode() bool { return p.Fault == unschedulable || p.Fault == pending }

// inCrashLoop reports whether the pod has crashed too often to be Ready for long. The restarts of a pod that is older than
// the release are not counted: they include those of its former versions. began is Input.Began.
func (p Pod) inCrashLoop(began time.Time) bool {
	return p.Restarts >= crashes && !p.Created.Before(began)
}

// since is when a pod's fault began: its creation, if it is in a crash loop
// or has no status from its kubelet yet, else Changed.
func (p Pod) since() time.Time {
	if p.Restarts < crashes && p.Changed.After(p.Created) {
		return p.Changed
	}
	return p.Created
}
