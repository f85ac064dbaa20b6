package budget

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/generatedbudget"
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
	trimmed.Status.Phase, trimmed.Status.ObservedGeneration = p.Status.Phase, p.Status.ObservedGeneration
	for _, c := range p.Status.Conditions {
		switch c.Type {
		case corev1.PodReady, corev1.PodResizePending, corev1.PodResizeInProgress:
			trimmed.Status.Conditions = append(trimmed.Status.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status})
		}
	}
	return trimmed, nil
}

func trimMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion,
		DeletionTimestamp: m.DeletionTimestamp, OwnerReferences: m.OwnerReferences,
	}
}

// trimOwner reduces a built-in workload to its owners, its replicas, and the fields
// that package reconciler/protection/generatedbudget reads from the same cache.
func trimOwner(obj any) (any, error) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		trimmed := &appsv1.Deployment{TypeMeta: o.TypeMeta, ObjectMeta: trimMeta(o.ObjectMeta), Spec: appsv1.DeploymentSpec{
			Replicas: o.Spec.Replicas, Selector: o.Spec.Selector, Strategy: o.Spec.Strategy}}
		trimmed.Annotations = generatedbudget.FilterAnnotations(o.Annotations)
		return trimmed, nil
	case *appsv1.ReplicaSet:
		return &appsv1.ReplicaSet{TypeMeta: o.TypeMeta, ObjectMeta: trimMeta(o.ObjectMeta), Spec: appsv1.ReplicaSetSpec{Replicas: o.Spec.Replicas}}, nil
	case *appsv1.StatefulSet:
		trimmed := &appsv1.StatefulSet{TypeMeta: o.TypeMeta, ObjectMeta: trimMeta(o.ObjectMeta), Spec: appsv1.StatefulSetSpec{
			Replicas: o.Spec.Replicas, Selector: o.Spec.Selector, UpdateStrategy: o.Spec.UpdateStrategy}}
		trimmed.Annotations = generatedbudget.FilterAnnotations(o.Annotations)
		return trimmed, nil
	case *appsv1.DaemonSet:
		return &appsv1.DaemonSet{TypeMeta: o.TypeMeta, ObjectMeta: trimMeta(o.ObjectMeta),
			Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: o.Status.DesiredNumberScheduled}}, nil
	}
	return obj, nil
}
