package budget

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

// Action is the effect of a request on pods.
type Action struct {
	Operation v1alpha1.PodOperation
	// Subject names the object of the request in messages.
	Subject string
	// Controller is the name of the controller that the request deletes or updates; empty if it is about a pod.
	Controller string
	// Departure is how an update takes a ReplicaSet from its controller; nil for other requests. Then Pods is empty.
	Departure *departure
	// Selector selects Pods, if the request deletes a controller.
	Selector labels.Selector
	// Orphaning is the UID of Controller if its deletion orphans what it owns. Then the request is
	// charged only for pods that are not below the target of a budget afterwards.
	Orphaning types.UID
	// Pods are the affected pods before the request.
	Pods []*corev1.Pod
	// After is the pod after an update; nil for other operations.
	After *corev1.Pod
	// Effects are what the kubelet does because of an in-place change.
	Effects []budget.Effect
	// MayOnlyLeave means that the update can do nothing but take the pod out of a budget: it
	// changes only labels or the controller. It is not charged to a budget that covers the
	// pod afterwards.
	MayOnlyLeave bool
}

// ofUpdate returns the Action of an update of a pod or of its status; nil if the update cannot
// make the pod unavailable.
func ofUpdate(before, after *corev1.Pod) *Action {
	a := &Action{Operation: v1alpha1.OperationUpdate, Subject: "pod " + before.Name, Pods: []*corev1.Pod{before}, After: after,
		Effects: budget.EffectsOf(before, after)}
	switch {
	case !equality.Semantic.DeepEqual(images(before), images(after)):
	// The kubelet ends the pod at its deadline, without a request.
	case !ptr.Equal(before.Spec.ActiveDeadlineSeconds, after.Spec.ActiveDeadlineSeconds):
	case endsReadiness(before, after):
	case budget.MarkedUnavailable(after.Labels) && !budget.MarkedUnavailable(before.Labels):
	case budget.Exempt(after) && !budget.Exempt(before):
	case !maps.Equal(before.Labels, after.Labels), controllerOf(before) != controllerOf(after):
		a.MayOnlyLeave = true
	default:
		return nil
	}
	return a
}

// controllerOf returns the reference of a pod, or another object, to its controller; empty if it has none. All
// fields count: with another name or kind, the controller would not be found, and its pods may
// be deleted.
func controllerOf(o metav1.Object) metav1.OwnerReference {
	ref := metav1.GetControllerOfNoCopy(o)
	if ref == nil {
		return metav1.OwnerReference{}
	}
	return metav1.OwnerReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, UID: ref.UID}
}

// ofResize returns the Action of a resize of a pod; nil if no container restarts.
func ofResize(before, after *corev1.Pod) *Action {
	if !budget.ResizeRestarts(before, after) {
		return nil
	}
	return &Action{Operation: v1alpha1.OperationResize, Subject: "pod " + before.Name, Pods: []*corev1.Pod{before},
		Effects: budget.EffectsOf(before, after)}
}
