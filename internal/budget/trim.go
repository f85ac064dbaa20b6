package budget

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// TrimPod returns the fields of a pod that budgets need.
func TrimPod(p *corev1.Pod) *corev1.Pod {
	trimmed := &corev1.Pod{TypeMeta: p.TypeMeta, ObjectMeta: TrimMeta(p.ObjectMeta)}
	trimmed.Labels = p.Labels
	if value, ok := p.Annotations[v1alpha1.NoProtectAnnotation]; ok {
		trimmed.Annotations = map[string]string{v1alpha1.NoProtectAnnotation: value}
	}
	trimmed.Generation = p.Generation
	trimmed.Spec = trimSpec(p.Spec)
	trimmed.Status = trimStatus(p.Status)
	return trimmed
}

// TrimForDeletion returns the fields of a pod that the deletion of its controller needs: not those of its containers.
func TrimForDeletion(p *corev1.Pod) *corev1.Pod {
	trimmed := TrimPod(p)
	trimmed.Spec = corev1.PodSpec{}
	trimmed.Status.InitContainerStatuses, trimmed.Status.ContainerStatuses = nil, nil
	return trimmed
}

// trimSpec keeps the fields that are compared with the Effects of in-place changes.
func trimSpec(spec corev1.PodSpec) corev1.PodSpec {
	trimmed := corev1.PodSpec{ActiveDeadlineSeconds: spec.ActiveDeadlineSeconds, Resources: spec.Resources}
	for _, c := range spec.InitContainers {
		if isSidecar(c) {
			trimmed.InitContainers = append(trimmed.InitContainers, trimContainer(c))
		}
	}
	for _, c := range spec.Containers {
		trimmed.Containers = append(trimmed.Containers, trimContainer(c))
	}
	return trimmed
}

func trimContainer(c corev1.Container) corev1.Container {
	trimmed := corev1.Container{Name: c.Name, Image: c.Image, RestartPolicy: c.RestartPolicy}
	if len(restartResources(c)) > 0 {
		trimmed.ResizePolicy, trimmed.Resources = c.ResizePolicy, c.Resources
	}
	return trimmed
}

func trimStatus(status corev1.PodStatus) corev1.PodStatus {
	trimmed := corev1.PodStatus{Phase: status.Phase, ObservedGeneration: status.ObservedGeneration}
	for _, c := range status.Conditions {
		switch c.Type {
		case corev1.PodReady, corev1.PodResizePending:
			trimmed.Conditions = append(trimmed.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason})
		}
	}
	trimmed.InitContainerStatuses, trimmed.ContainerStatuses = trimContainerIDs(status.InitContainerStatuses), trimContainerIDs(status.ContainerStatuses)
	return trimmed
}

func trimContainerIDs(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var trimmed []corev1.ContainerStatus
	for _, s := range statuses {
		if s.ContainerID != "" {
			trimmed = append(trimmed, corev1.ContainerStatus{Name: s.Name, ContainerID: s.ContainerID})
		}
	}
	return trimmed
}

// TrimMeta returns the fields of the metadata that budgets need of pods and their owners.
func TrimMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion,
		DeletionTimestamp: m.DeletionTimestamp, OwnerReferences: m.OwnerReferences,
	}
}
