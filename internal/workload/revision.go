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
// the current revision, and the others the update revision. The partition counts from the start ordinal.
func (w *Workload) RecreatesSameRevision(p *corev1.Pod) bool {
	partition, _ := w.PauseValue.(int64)
	ordinal, err := strconv.ParseInt(p.Name[strings.LastIndexByte(p.Name, '-')+1:], 10, 32)
	next := w.updateRevision
	if err == nil && ordinal-w.startOrdinal < partition {
		next = w.currentRevision
	}
	return PodOfRevision(p, next)
}
