package budget

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// resizeRestarts reports whether the kubelet restarts a container for a resize: a
// resource changes whose resizePolicy is RestartContainer. Without a policy a running
// container is resized. A change of the pod-level resources counts as a change of the
// resources of each container.
func resizeRestarts(before, after *corev1.Pod) bool {
	ofPod := changedResources(podResources(before), podResources(after))
	was := maps.Collect(containers(before))
	for name, c := range containers(after) {
		changed := append(changedResources(was[name].Resources, c.Resources), ofPod...)
		if slices.ContainsFunc(c.ResizePolicy, func(p corev1.ContainerResizePolicy) bool {
			return p.RestartPolicy == corev1.RestartContainer && slices.Contains(changed, p.ResourceName)
		}) {
			return true
		}
	}
	return false
}

func podResources(p *corev1.Pod) corev1.ResourceRequirements {
	if p.Spec.Resources == nil {
		return corev1.ResourceRequirements{}
	}
	return *p.Spec.Resources
}

// changedResources returns the resources whose request or limit changes.
func changedResources(before, after corev1.ResourceRequirements) []corev1.ResourceName {
	var changed []corev1.ResourceName
	for _, lists := range [][2]corev1.ResourceList{{before.Requests, after.Requests}, {before.Limits, after.Limits}} {
		for _, list := range lists {
			for name := range list {
				was, hadIt := lists[0][name]
				is, hasIt := lists[1][name]
				if hadIt != hasIt || !equality.Semantic.DeepEqual(was, is) {
					changed = append(changed, name)
				}
			}
		}
	}
	return changed
}
