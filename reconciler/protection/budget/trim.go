package budget

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/generatedbudget"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

var (
	_ cache.TransformFunc = trimPod
	_ cache.TransformFunc = trimOwner
)

// trimPod trims a pod before it is cached.
func trimPod(obj any) (any, error) {
	if p, ok := obj.(*corev1.Pod); ok {
		return budget.TrimPod(p), nil
	}
	return obj, nil
}

// trimOwner reduces a built-in workload to its owners, its replicas, its pods' labels, and the fields
// that package reconciler/protection/generatedbudget reads from the same cache.
func trimOwner(obj any) (any, error) {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		trimmed := &appsv1.Deployment{TypeMeta: o.TypeMeta, ObjectMeta: budget.TrimMeta(o.ObjectMeta), Spec: appsv1.DeploymentSpec{
			Replicas: o.Spec.Replicas, Selector: o.Spec.Selector, Strategy: o.Spec.Strategy}}
		trimmed.Spec.Template.Labels = o.Spec.Template.Labels
		trimmed.Annotations = generatedbudget.FilterAnnotations(o.Annotations)
		if _, _, ok := workload.KnativeServiceOf(o); ok {
			trimmed.Labels = o.Labels // generatedbudget asks the same
		}
		return trimmed, nil
	case *appsv1.ReplicaSet:
		return &appsv1.ReplicaSet{TypeMeta: o.TypeMeta, ObjectMeta: budget.TrimMeta(o.ObjectMeta), Spec: appsv1.ReplicaSetSpec{Replicas: o.Spec.Replicas}}, nil
	case *appsv1.StatefulSet:
		trimmed := &appsv1.StatefulSet{TypeMeta: o.TypeMeta, ObjectMeta: budget.TrimMeta(o.ObjectMeta), Spec: appsv1.StatefulSetSpec{
			Replicas: o.Spec.Replicas, Selector: o.Spec.Selector, UpdateStrategy: o.Spec.UpdateStrategy}}
		trimmed.Spec.Template.Labels = o.Spec.Template.Labels
		trimmed.Annotations = generatedbudget.FilterAnnotations(o.Annotations)
		return trimmed, nil
	case *appsv1.DaemonSet:
		return &appsv1.DaemonSet{TypeMeta: o.TypeMeta, ObjectMeta: budget.TrimMeta(o.ObjectMeta),
			Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: o.Status.DesiredNumberScheduled}}, nil
	}
	return obj, nil
}
