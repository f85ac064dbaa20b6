package budget

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// disruptiveGates are the readiness gates by which OpenKruise makes a pod unready before
// it updates or stops containers. Gates of other programs, for example load balancers,
// report what the program observes, and a denial would not change that. The
// matchConditions of the webhook name the same gates.
var disruptiveGates = []corev1.PodConditionType{"InPlaceUpdateReady", "KruisePodReady"}

// endsReadiness reports whether the conditions of the pod no longer meet one of its
// disruptiveGates.
func endsReadiness(before, after *corev1.Pod) bool {
	return slices.ContainsFunc(before.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool {
		return slices.Contains(disruptiveGates, g.ConditionType) && isTrue(before, g.ConditionType) && !isTrue(after, g.ConditionType)
	})
}

func isTrue(p *corev1.Pod, condition corev1.PodConditionType) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == condition && c.Status == corev1.ConditionTrue
	})
}
