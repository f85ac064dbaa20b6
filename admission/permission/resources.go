package permission

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// resources returns the resources of the init container for a pod with these app containers.
// A LimitRange and a quota that allow the app allow the init container, a Guaranteed pod stays
// Guaranteed, and the effective resources of the pod do not grow:
//   - The init container needs little CPU and memory. It requests more if every app container
//     does: the smallest of their requests, which is at least the minimum of a LimitRange.
//   - The memory limit is the request. A small CPU limit would delay the start by a second, so
//     there is none or, if every app container has one, the CPU of the app container with the
//     highest limit.
//   - It has a request or limit of ephemeral storage if every app container has: the smallest.
func resources(apps []corev1.Container) corev1.ResourceRequirements {
	memory := larger(resource.MustParse("32Mi"), smallest(apps, requestOf(corev1.ResourceMemory)))
	r := corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    larger(resource.MustParse("50m"), smallest(apps, requestOf(corev1.ResourceCPU))),
			corev1.ResourceMemory: memory,
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: memory},
	}
	if most := highestCPULimit(apps); most != nil {
		r.Limits[corev1.ResourceCPU], r.Requests[corev1.ResourceCPU] = *most.Limits.Cpu(), requestOf(corev1.ResourceCPU)(*most)
	}
	if q := smallest(apps, requestOf(corev1.ResourceEphemeralStorage)); !q.IsZero() {
		r.Requests[corev1.ResourceEphemeralStorage] = q
	}
	if q := smallest(apps, limitOf(corev1.ResourceEphemeralStorage)); !q.IsZero() {
		r.Limits[corev1.ResourceEphemeralStorage] = q
	}
	return r
}

// highestCPULimit returns the resources of the app container with the highest CPU limit, or nil if
// a container has none.
func highestCPULimit(apps []corev1.Container) *corev1.ResourceRequirements {
	var most *corev1.ResourceRequirements
	for i := range apps {
		app := &apps[i].Resources
		switch limit := app.Limits.Cpu(); {
		case limit.IsZero():
			return nil
		case most == nil || limit.Cmp(*most.Limits.Cpu()) > 0:
			most = app
		}
	}
	return most
}

// requestOf returns a function that returns the request of a resource; without one it is the limit.
func requestOf(name corev1.ResourceName) func(corev1.ResourceRequirements) resource.Quantity {
	return func(r corev1.ResourceRequirements) resource.Quantity {
		if q, ok := r.Requests[name]; ok {
			return q
		}
		return r.Limits[name]
	}
}

func limitOf(name corev1.ResourceName) func(corev1.ResourceRequirements) resource.Quantity {
	return func(r corev1.ResourceRequirements) resource.Quantity { return r.Limits[name] }
}

// smallest returns the smallest quantity of the app containers; 0 if one has none.
func smallest(apps []corev1.Container, of func(corev1.ResourceRequirements) resource.Quantity) (least resource.Quantity) {
	for i := range apps {
		if q := of(apps[i].Resources); i == 0 || q.Cmp(least) < 0 {
			least = q
		}
	}
	return least
}

func larger(a, b resource.Quantity) resource.Quantity {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}
