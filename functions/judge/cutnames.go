package judge

import (
	"regexp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// maxGeneratedPrefix is the length to which the API server cuts the prefix of a generated name.
const maxGeneratedPrefix = 58

// podPattern returns the pattern of the names of the pods of a ReplicaSet.
func podPattern(set string) string {
	prefix := set + "-"
	return regexp.QuoteMeta(prefix[:min(len(prefix), maxGeneratedPrefix)]) + ".+"
}

// ambiguous returns the patterns that do not show the version of a pod, because the name of its ReplicaSet is cut: two of
// new, old and failed pods have them, or nothing after the name of the workload is left.
func (p patterns) ambiguous(workloadName string) map[string]bool {
	kinds, out := map[string]int{}, map[string]bool{}
	for kind, ofKind := range [][]string{p.newPods, p.oldPods, p.failedPods, {podPattern(workloadName)}} {
		for _, pattern := range ofKind {
			if other, found := kinds[pattern]; found && other != kind {
				out[pattern] = true
			}
			kinds[pattern] = kind
		}
	}
	return out
}

// byName returns the patterns of a ReplicaSet's pods: its pattern or, if that is ambiguous, the names of the pods that exist.
func byName(ambiguous map[string]bool, pods []*corev1.Pod) func(*appsv1.ReplicaSet) []string {
	return func(set *appsv1.ReplicaSet) []string {
		pattern := podPattern(set.Name)
		if !ambiguous[pattern] {
			return []string{pattern}
		}
		var names []string
		for _, p := range pods {
			if isControlledBy(p, set.UID) {
				names = append(names, regexp.QuoteMeta(p.Name))
			}
		}
		slices.Sort(names)
		return names
	}
}
