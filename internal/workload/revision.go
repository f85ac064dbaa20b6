package workload

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// PodOfRevision reports whether a pod has the version of a ControllerRevision of the workload that
// owns the pod. Its label is the name of the ControllerRevision for a StatefulSet, and its suffix
// for a DaemonSet.
func PodOfRevision(p *corev1.Pod, revision string) bool {
	hash := p.Labels[appsv1.ControllerRevisionHashLabelKey]
	return hash != "" && (revision == hash || strings.HasSuffix(revision, "-"+hash))
}
