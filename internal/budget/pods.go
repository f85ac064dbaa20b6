package budget

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// Available says whether the pod serves: Running, Ready, not about to end, and
// nobody says that it is made unavailable.
func Available(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning && ready(p) && !MarkedUnavailable(p.Labels)
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// MarkedUnavailable says whether a program says by a label that it makes the
// pod unavailable.
func MarkedUnavailable(labels map[string]string) bool {
	for key := range labels {
		if strings.HasPrefix(key, v1alpha1.UnavailableLabelPrefix) {
			return true
		}
	}
	return false
}

// Finished says whether the pod has ended by itself.
func Finished(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// Exempt says whether a person took the pod out of all budgets.
func Exempt(p *corev1.Pod) bool { return p.Annotations[v1alpha1.NoProtectAnnotation] == "true" }

// Counts says whether the pod is one of those that a budget can rely on. One
// that is exempt may go at any time, and nobody is asked.
func CountsAsAvailable(p *corev1.Pod) bool { return Available(p) && !Exempt(p) }
