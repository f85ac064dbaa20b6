package permission

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// resources of the init container, for a pod with these app containers. It needs
// next to nothing, but a limit of next to nothing would have it take a second to
// start. So it has no limit of CPU, or, where every app container has one, the
// CPU of the one that may use most: a pod of QoS Guaranteed stays one, what a
// LimitRange lets pass for the app it lets pass for us, and nothing is added to
// what the pod needs.
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
