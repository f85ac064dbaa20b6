package workload

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// PodActive reports whether a pod is neither completed nor terminating.
func PodActive(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && !PodEnded(p)
}

// PodEnded reports whether the containers of a pod have ended for good, or its node evicted or rejected it. The
// object stays, and its controller creates another pod.
func PodEnded(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// PodReady reports whether a pod is Ready.
func PodReady(p *corev1.Pod) bool {
	_, ready := PodReadySince(p)
	return ready
}

// PodReadySince returns the time since which a pod has been Ready; false if it is not
// Ready.
func PodReadySince(p *corev1.Pod) (time.Time, bool) {
	for _, cond := range p.Status.Conditions {
		if cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue {
			return cond.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}
