package permission

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// resources returns the resources of the init container for a pod with these app
// containers. The container needs little CPU, but a small limit would delay its
// start by a second. So it has no CPU limit or, if every app container has one, the
// CPU of the app container with the highest limit. Then a Guaranteed pod stays
// Guaranteed, a LimitRange that allows the app allows the init container, and the
// effective resources of the pod do not grow.
func resources(apps []corev1.Container) corev1.ResourceRequirements {
	memory := resource.MustParse("32Mi")
	r := corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"), corev1.ResourceMemory: memory},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: memory},
	}
	var most corev1.ResourceRequirements
	for _, app := range apps {
		limit, limited := app.Resources.Limits[corev1.ResourceCPU]
		if !limited {
			return r
		}
		if limit.Cmp(*most.Limits.Cpu()) > 0 {
			most = app.Resources
		}
	}
	if most.Limits.Cpu().IsZero() {
		return r
	}
	r.Limits[corev1.ResourceCPU], r.Requests[corev1.ResourceCPU] = *most.Limits.Cpu(), *most.Limits.Cpu()
	if request, ok := most.Requests[corev1.ResourceCPU]; ok {
		r.Requests[corev1.ResourceCPU] = request
	}
	return r
}
