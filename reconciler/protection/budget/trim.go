package budget

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/generatedbudget"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

var (
	_ cache.TransformFunc = trimPod
	_ cache.TransformFunc = trimOwner
)

// trimPod reduces a pod, before it is cached, to the fields that budgets need.
func trimPod(obj any) (any, error) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	trimmed := &corev1.Pod{TypeMeta: p.TypeMeta, ObjectMeta: trimMeta(p.ObjectMeta)}
	trimmed.Labels = p.Labels
	if value, ok := p.Annotations[v1alpha1.NoProtectAnnotation]; ok {
		trimmed.Annotations = map[string]string{v1alpha1.NoProtectAnnotation: value}
	}
	trimmed.Generation = p.Generation
	trimmed.Spec = trimSpec(p.Spec)
	trimmed.Status = trimStatus(p.Status)
	return trimmed, nil
}

// trimSpec keeps the fields that are compared with the Effects of in-place changes.
func trimSpec(spec corev1.PodSpec) corev1.PodSpec {
	trimmed := corev1.PodSpec{ActiveDeadlineSeconds: spec.ActiveDeadlineSeconds, Resources: spec.Resources}
	for _, c := range spec.InitContainers {
		if budget.IsSidecar(c) {
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
	if len(budget.RestartResources(c)) > 0 {
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

func trimMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion,
		DeletionTimestamp: m.DeletionTimestamp, OwnerReferences: m.OwnerReferences,
	}
}

// trimOwner reduces a built-in workload to its owners, its replicas, its pods' labels, and the fields
// that package reconciler/protection/generatedbudget reads from the same cache.
func trimOwner(obj any) (any, error) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		trimmed := &appsv1.Deployment{TypeMeta: o.TypeMeta, ObjectMeta: trimMeta(o.ObjectMeta), Spec: appsv1.DeploymentSpec{
			Replicas: o.Spec.Replicas, Selector: o.Spec.Selector, Strategy: o.Spec.Strategy}}
		trimmed.Spec.Template.Labels = o.Spec.Template.Labels
		trimmed.Annotations = generatedbudget.FilterAnnotations(o.Annotations)
		if _, _, ok := workload.KnativeServiceOf(o); ok {
			trimmed.Labels = o.Labels // generatedbudget asks the same
		}
		return trimmed, nil
	case *appsv1.ReplicaSet:
		return &appsv1.ReplicaSet{TypeMeta: o.TypeMeta, ObjectMeta: trimMeta(o.ObjectMeta), Spec: appsv1.ReplicaSetSpec{Replicas: o.Spec.Replicas}}, nil
	case *appsv1.StatefulSet:
		trimmed := &appsv1.StatefulSet{TypeMeta: o.TypeMeta, ObjectMeta: trimMeta(o.ObjectMeta), Spec: appsv1.StatefulSetSpec{
			Replicas: o.Spec.Replicas, Selector: o.Spec.Selector, UpdateStrategy: o.Spec.UpdateStrategy}}
		trimmed.Spec.Template.Labels = o.Spec.Template.Labels
		trimmed.Annotations = generatedbudget.FilterAnnotations(o.Annotations)
		return trimmed, nil
	case *appsv1.DaemonSet:
		return &appsv1.DaemonSet{TypeMeta: o.TypeMeta, ObjectMeta: trimMeta(o.ObjectMeta),
			Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: o.Status.DesiredNumberScheduled}}, nil
	}
	return obj, nil
}
