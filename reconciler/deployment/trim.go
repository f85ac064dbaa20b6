package deployment

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

var _ cache.TransformFunc = Trim

// Trim drops from a Deployment what nobody here reads and what makes up half
// of its size, before it is cached: managed fields and the copy of the whole
// object that kubectl apply keeps in an annotation.
func Trim(obj any) (any, error) {
	if d, ok := obj.(*appsv1.Deployment); ok {
		d.ManagedFields = nil
		delete(d.Annotations, corev1.LastAppliedConfigAnnotation)
	}
	return obj, nil
}
