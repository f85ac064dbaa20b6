package podpermission

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

var (
	_ cache.TransformFunc = trimPod
	_ cache.TransformFunc = trimNode
)

// trimPod keeps only the fields of a pod that the package uses, because the pods of
// the whole cluster are cached.
func trimPod(obj any) (any, error) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	trimmed := &corev1.Pod{TypeMeta: p.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Name: p.Name, Namespace: p.Namespace, UID: p.UID, ResourceVersion: p.ResourceVersion, CreationTimestamp: p.CreationTimestamp,
		DeletionTimestamp: p.DeletionTimestamp, DeletionGracePeriodSeconds: p.DeletionGracePeriodSeconds, OwnerReferences: p.OwnerReferences,
	}}
	if podmeta.HasFinalizer(p) {
		trimmed.Finalizers = []string{podmeta.Finalizer}
	}
	if value, ok := p.Labels[podmeta.Label]; ok {
		trimmed.Labels = map[string]string{podmeta.Label: value}
	}
	for _, key := range []string{podmeta.PermissionSetAnnotation, corev1.MirrorPodAnnotationKey} {
		if value, ok := p.Annotations[key]; ok {
			if trimmed.Annotations == nil {
				trimmed.Annotations = map[string]string{}
			}
			trimmed.Annotations[key] = value
		}
	}
	trimmed.Spec.NodeName = p.Spec.NodeName
	if c := podmeta.InitContainer(p); c != nil {
		trimmed.Spec.InitContainers = []corev1.Container{{Name: c.Name, Env: c.Env}}
	}
	trimmed.Status.Phase, trimmed.Status.PodIP, trimmed.Status.PodIPs = p.Status.Phase, p.Status.PodIP, p.Status.PodIPs
	for _, kind := range []corev1.PodConditionType{podmeta.ConditionInjected, podmeta.ConditionAuthorized} {
		if c := podmeta.Condition(p, kind); c != nil {
			trimmed.Status.Conditions = append(trimmed.Status.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason})
		}
	}
	if podmeta.HasFinalizer(p) {
		trimmed.Spec.Containers = make([]corev1.Container, len(p.Spec.Containers))
		trimmed.Status.ContainerStatuses = trimStates(p.Status.ContainerStatuses)
		trimmed.Status.InitContainerStatuses = trimStates(p.Status.InitContainerStatuses)
		trimmed.Status.EphemeralContainerStatuses = trimStates(p.Status.EphemeralContainerStatuses)
	}
	return trimmed, nil
}

func trimStates(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	trimmed := make([]corev1.ContainerStatus, 0, len(all))
	for _, c := range all {
		t := corev1.ContainerStatus{Name: c.Name}
		switch {
		case c.State.Terminated != nil:
			t.State.Terminated = &corev1.ContainerStateTerminated{FinishedAt: c.State.Terminated.FinishedAt}
		case c.State.Running != nil:
			t.State.Running = &corev1.ContainerStateRunning{}
		}
		trimmed = append(trimmed, t)
	}
	return trimmed
}

// trimNode keeps only the taints and the Ready condition of a node.
func trimNode(obj any) (any, error) {
	n, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	trimmed := &corev1.Node{TypeMeta: n.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion}}
	trimmed.Spec.Taints = n.Spec.Taints
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			trimmed.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return trimmed, nil
}
