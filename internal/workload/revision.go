package workload

import (
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// PodOfRevision reports whether a pod has the version of a ControllerRevision of the workload that
// owns the pod. For a StatefulSet, the label of the pod is the name of the ControllerRevision. For a
// DaemonSet it is the suffix of that name.
func PodOfRevision(p *corev1.Pod, revision string) bool {
	hash := p.Labels[appsv1.ControllerRevisionHashLabelKey]
	return hash != "" && (revision == hash || strings.HasSuffix(revision, "-"+hash))
}

// RecreatesSameRevision reports whether the StatefulSet controller would create a pod of the StatefulSet
// again with the revision that the pod has, if the pod was deleted: new pods below the partition have
// the current revision, and the others the update revision. The partition counts from the start ordinal. That of
// OpenKruise may count otherwise (unorderedUpdate, reserveOrdinals): a new pod may then have either revision.
func (w *Workload) RecreatesSameRevision(p *corev1.Pod) bool {
	ordinal, err := strconv.ParseInt(p.Name[strings.LastIndexByte(p.Name, '-')+1:], 10, 32)
	current, update := PodOfRevision(p, w.currentRevision), PodOfRevision(p, w.updateRevision)
	switch {
	case w.partition > 0 && w.Kind.Group != StatefulSet.Group:
		return current || update
	case err == nil && ordinal-w.startOrdinal < w.partition:
		return current
	default:
		return update
	}
}
