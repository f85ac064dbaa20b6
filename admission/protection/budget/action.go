package budget

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

// Action is what a request would do to pods.
type Action struct {
	Operation v1alpha1.PodOperation
	// Subject is what the request is about, as it stands in a refusal.
	Subject string
	// Pods are those that it would make unavailable, as they are before.
	Pods []*corev1.Pod
	// Loosened is the pod after a change that does no more than give it other
	// labels or another controller: it matters to a budget that the pod leaves by it.
	Relabeled *corev1.Pod
}

// ofUpdate returns what an update of a pod's object would do; nil if nothing
// that matters. It is judged by what the pod was.
func ofUpdate(before, after *corev1.Pod) *Action {
	a := &Action{Operation: v1alpha1.OperationUpdate, Subject: "pod " + before.Name, Pods: []*corev1.Pod{before}}
	switch {
	case !equality.Semantic.DeepEqual(images(before), images(after)):
	case budget.MarkedUnavailable(after.Labels) && !budget.MarkedUnavailable(before.Labels):
	case budget.Exempt(after) && !budget.Exempt(before):
	case !maps.Equal(before.Labels, after.Labels), controllerOf(before) != controllerOf(after):
		a.Relabeled = after
	default:
		return nil
	}
	return a
}

func controllerOf(p *corev1.Pod) types.UID {
	if ref := metav1.GetControllerOfNoCopy(p); ref != nil {
		return ref.UID
	}
	return ""
}

// ofResize returns what the resize subresource would do.
func ofResize(before, after *corev1.Pod) *Action {
	if equality.Semantic.DeepEqual(resources(before), resources(after)) {
		return nil
	}
	return &Action{Operation: v1alpha1.OperationResize, Subject: "pod " + before.Name, Pods: []*corev1.Pod{before}}
}

// images are those of all containers, sidecars among them.
func images(p *corev1.Pod) map[string]string {
	found := map[string]string{}
	for _, c := range p.Spec.InitContainers {
		found["init/"+c.Name] = c.Image
	}
	for _, c := range p.Spec.Containers {
		found[c.Name] = c.Image
	}
	return found
}

func resources(p *corev1.Pod) map[string]corev1.ResourceRequirements {
	found := map[string]corev1.ResourceRequirements{}
	for _, c := range p.Spec.InitContainers {
		found["init/"+c.Name] = c.Resources
	}
	for _, c := range p.Spec.Containers {
		found[c.Name] = c.Resources
	}
	if p.Spec.Resources != nil {
		found["/"] = *p.Spec.Resources
	}
	return found
}

// removes says whether the pods are gone afterwards.
func (a *Action) deletesPods() bool {
	return a.Operation == v1alpha1.OperationDelete || a.Operation == v1alpha1.OperationEvict
}
