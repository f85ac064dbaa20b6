package budget

import (
	"iter"

	corev1 "k8s.io/api/core/v1"
)

// containers returns the containers of a pod by name; the name of an init container has the prefix init/.
func containers(p *corev1.Pod) iter.Seq2[string, corev1.Container] {
	return func(yield func(string, corev1.Container) bool) {
		for _, c := range p.Spec.InitContainers {
			if !yield("init/"+c.Name, c) {
				return
			}
		}
		for _, c := range p.Spec.Containers {
			if !yield(c.Name, c) {
				return
			}
		}
	}
}

// images returns the images of the containers.
func images(p *corev1.Pod) map[string]string {
	found := map[string]string{}
	for name, c := range containers(p) {
		found[name] = c.Image
	}
	return found
}
