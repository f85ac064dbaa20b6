package pod

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/reconciler/change/releasefinder"
)

var (
	_ cache.TransformFunc = Trim
	_ cache.TransformFunc = TrimReplicaSet
)

// Trim reduces a pod, before it is cached, to the fields that the reconcilers read. A
// cluster has tens of thousands of pods, and a whole one is ten times the size. The
// containers that it keeps are those whose image was changed. Other objects stay unchanged.
func Trim(obj any) (any, error) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	var affinity *corev1.Affinity
	if p.Spec.NodeName == "" {
		affinity = p.Spec.Affinity // the node of a pod of a DaemonSet
	}
	spec, managed := changedImages(&p.Spec, p.ManagedFields)
	spec.NodeName, spec.Affinity = p.Spec.NodeName, affinity
	spec.Hostname, spec.HostnameOverride = p.Spec.Hostname, p.Spec.HostnameOverride
	return &corev1.Pod{
		TypeMeta: p.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, Namespace: p.Namespace, UID: p.UID, ResourceVersion: p.ResourceVersion,
			Labels: only(p.Labels, readLabels), OwnerReferences: p.OwnerReferences,
			CreationTimestamp: p.CreationTimestamp, DeletionTimestamp: p.DeletionTimestamp,
			ManagedFields: managed,
		},
		Spec: spec,
		Status: corev1.PodStatus{
			Phase: p.Status.Phase, PodIP: p.Status.PodIP,
			Conditions:            trimConditions(&p.Status),
			InitContainerStatuses: trimInitContainers(p),
			ContainerStatuses:     trimContainers(p.Status.ContainerStatuses),
		},
	}, nil
}

// trimConditions returns condition Ready, and of a Pending pod also PodScheduled.
func trimConditions(s *corev1.PodStatus) []corev1.PodCondition {
	var trimmed []corev1.PodCondition
	for _, c := range s.Conditions {
		switch {
		case c.Type == corev1.PodReady:
			trimmed = append(trimmed, c)
		case c.Type == corev1.PodScheduled && s.Phase == corev1.PodPending:
			trimmed = append(trimmed, corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason, LastTransitionTime: c.LastTransitionTime})
		}
	}
	return slices.Clip(trimmed)
}

func trimContainers(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	trimmed := make([]corev1.ContainerStatus, 0, len(all))
	for _, c := range all {
		t := corev1.ContainerStatus{Name: c.Name, Ready: c.Ready, RestartCount: c.RestartCount}
		if w := c.State.Waiting; w != nil {
			t.State.Waiting = &corev1.ContainerStateWaiting{Reason: w.Reason}
		}
		trimmed = append(trimmed, t)
	}
	return slices.Clip(trimmed)
}

// trimInitContainers returns the init containers of a pod whose containers have not all started, and of a pod that
// runs the sidecars that wait, for example because they crash; nil for other pods.
func trimInitContainers(p *corev1.Pod) []corev1.ContainerStatus {
	all := p.Status.InitContainerStatuses
	switch p.Status.Phase {
	case corev1.PodPending:
	case corev1.PodRunning:
		var waiting []corev1.ContainerStatus
		for _, c := range all {
			if c.State.Waiting != nil {
				waiting = append(waiting, c)
			}
		}
		if all = waiting; len(all) == 0 {
			return nil
		}
	default:
		return nil
	}
	trimmed := trimContainers(all)
	for i, c := range all {
		if c.State.Running != nil {
			trimmed[i].State.Running = &corev1.ContainerStateRunning{}
		}
		trimmed[i].State.Terminated = trimTerminated(c.State.Terminated)
		trimmed[i].LastTerminationState.Terminated = trimTerminated(c.LastTerminationState.Terminated)
	}
	return trimmed
}

func trimTerminated(t *corev1.ContainerStateTerminated) *corev1.ContainerStateTerminated {
	if t == nil {
		return nil
	}
	return &corev1.ContainerStateTerminated{FinishedAt: t.FinishedAt}
}

// readLabels are the labels of pods that the reconcilers read.
var readLabels = []string{v1alpha1.FinishedLabel, appsv1.ControllerRevisionHashLabelKey}

// only returns the entries of some keys, or nil if there are none.
func only(all map[string]string, keys []string) map[string]string {
	var out map[string]string
	for _, key := range keys {
		if value, ok := all[key]; ok {
			if out == nil {
				out = make(map[string]string, len(keys))
			}
			out[key] = value
		}
	}
	return out
}

// releaseAnnotations are the annotations of a ReplicaSet from which its release is
// read: copied from the workload by its controller, or written by that controller. ComputedKey is only in the cache.
var releaseAnnotations = []string{
	v1alpha1.VersionKey, v1alpha1.AttemptAnnotation, savedtemplate.RevisionAnnotation, savedtemplate.RolloutRevisionAnnotation,
	releasefinder.ComputedKey,
}

// TrimReplicaSet drops from a ReplicaSet its template except its version, most annotations and
// the managed fields. The containers that it keeps are those whose image was changed.
func TrimReplicaSet(obj any) (any, error) {
	rs, ok := obj.(*appsv1.ReplicaSet)
	if !ok {
		return obj, nil
	}
	releasefinder.SetComputed(rs)
	spec, managed := changedImages(&rs.Spec.Template.Spec, rs.ManagedFields)
	rs.Annotations, rs.ManagedFields = only(rs.Annotations, releaseAnnotations), managed
	rs.Spec.Template = corev1.PodTemplateSpec{Spec: spec}
	return rs, nil
}
