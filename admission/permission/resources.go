package permission

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	corev1listers "k8s.io/client-go/listers/core/v1"
)

// resources returns the resources of the init container for a pod with these app containers, in a
// namespace whose LimitRanges have this minimum:
//   - It requests 20m CPU and 32Mi memory, or the minimum if that is larger. Kubernetes counts the
//     largest request of init and app containers for the whole life of the pod, also after an app
//     container was resized. So only a pod whose containers together request less grows, to this.
//   - The memory limit is the request. A small CPU limit would delay the start by a second, so
//     there is none or, if every app container has one, the CPU request and limit of the app
//     container with the highest limit. So a Guaranteed pod stays Guaranteed.
//
// A pod with resources of its own (spec.resources) does not grow in the resources that these name; see
// within. LimitRanges add other resources, such as ephemeral-storage, to the container; see keepOfPlugins. A
// LimitRange rejects the pod if its maximum is smaller, or if it has only a ratio for a resource that the
// init container does not request.
func resources(apps []corev1.Container, minimum corev1.ResourceList) corev1.ResourceRequirements {
	memory := larger(resource.MustParse("32Mi"), minimum[corev1.ResourceMemory])
	r := corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU: larger(resource.MustParse("20m"), minimum[corev1.ResourceCPU]), corev1.ResourceMemory: memory,
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: memory},
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

// within lowers the resources of a container to those of its pod (spec.resources): the API server rejects a pod
// whose containers request more, or have a higher limit.
func within(r corev1.ResourceRequirements, pod *corev1.ResourceRequirements) corev1.ResourceRequirements {
	if pod != nil {
		lower(r.Limits, pod.Limits)
		lower(r.Requests, pod.Requests)
		lower(r.Requests, r.Limits)
	}
	return r
}

func lower(all, most corev1.ResourceList) {
	for name, quantity := range all {
		if limit, ok := most[name]; ok && quantity.Cmp(limit) > 0 {
			all[name] = limit
		}
	}
}

// minimumOf returns the largest minimum of a container in the LimitRanges of a namespace, by resource.
func minimumOf(ranges corev1listers.LimitRangeLister, namespace string) (corev1.ResourceList, error) {
	all, err := ranges.LimitRanges(namespace).List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list LimitRanges of namespace %s: %w", namespace, err)
	}
	minimum := corev1.ResourceList{}
	for _, r := range all {
		for _, item := range r.Spec.Limits {
			if item.Type != corev1.LimitTypeContainer {
				continue
			}
			for name, quantity := range item.Min {
				minimum[name] = larger(quantity, minimum[name])
			}
		}
	}
	return minimum, nil
}

func larger(a, b resource.Quantity) resource.Quantity {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}
