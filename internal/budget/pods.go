package budget

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Healthy reports whether a pod works: it is Running, Ready, not terminating,
// and not marked unavailable.
func Healthy(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning && workload.PodReady(p) && !MarkedUnavailable(p.Labels)
}

// MarkedUnavailable reports whether a label marks the pod as made unavailable by a
// program.
func MarkedUnavailable(labels map[string]string) bool {
	for key := range labels {
		if strings.HasPrefix(key, v1alpha1.UnavailableLabelPrefix) {
			return true
		}
	}
	return false
}

// Exempt reports whether the pod has the annotation that exempts it from budgets.
func Exempt(p *corev1.Pod) bool { return p.Annotations[v1alpha1.NoProtectAnnotation] == "true" }

// CountsAsAvailable decides whether a pod counts towards a budget's minimum. An
// exempt pod does not: it may be deleted at any time without a decision.
func CountsAsAvailable(p *corev1.Pod) bool { return Healthy(p) && !Exempt(p) }
