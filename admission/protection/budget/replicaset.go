package budget

import (
	"fmt"
	"maps"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// departure is an update that takes a ReplicaSet, and its pods, from its controller. Nothing becomes
// unavailable, so it is not charged: a budget that the pods may leave denies it.
type departure struct {
	// controller is the one before the update.
	controller metav1.OwnerReference
	// service is the Knative Service above the controller; empty if there is none. The Deployment of a
	// Revision does not name it, but Serving writes it to a label of the ReplicaSet.
	service string
	// replaced says that the ReplicaSet has another controller afterwards, or only other owners. The
	// garbage collector deletes a ReplicaSet whose owners do not exist, with its pods, whatever budget
	// covers them.
	replaced bool
	// orphaned says that the ReplicaSet has no controller afterwards, or other labels that its selector
	// does not match. Then the controller of Deployments orphans it, and creates new pods.
	orphaned bool
}

// ofReplicaSetUpdate returns the Action of an update of a ReplicaSet or of its status; nil if the
// ReplicaSet stays below its controller.
func ofReplicaSetUpdate(req *admissionv1.AdmissionRequest) (*Action, error) {
	before, err := decode[appsv1.ReplicaSet](req.OldObject)
	if err != nil {
		return nil, err
	}
	after, err := decode[appsv1.ReplicaSet](req.Object)
	if err != nil {
		return nil, err
	}
	d, err := departureOf(before, after)
	if err != nil || d == nil {
		return nil, err
	}
	return &Action{Operation: v1alpha1.OperationUpdate, Subject: "ReplicaSet " + before.Name, Controller: before.Name, Departure: d}, nil
}

// departureOf returns the departure of a ReplicaSet by an update; nil if there is none. Any controller may adopt
// a ReplicaSet that has none.
func departureOf(before, after *appsv1.ReplicaSet) (*departure, error) {
	from, to := metav1.GetControllerOfNoCopy(before), metav1.GetControllerOfNoCopy(after)
	if from == nil {
		return nil, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(before.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("parse selector of ReplicaSet %s: %w", before.Name, err)
	}
	d := departure{
		controller: *from, service: before.Labels[serviceLabel],
		replaced: !sameController(from, to) && len(after.OwnerReferences) > 0,
		orphaned: to == nil || !maps.Equal(before.Labels, after.Labels) && !selector.Matches(labels.Set(after.Labels)),
	}
	if !d.replaced && !d.orphaned {
		return nil, nil
	}
	return &d, nil
}

// sameController reports whether two references are to one controller; the second may be nil. An operator may change
// the version of its API.
func sameController(a, b *metav1.OwnerReference) bool {
	return b != nil && groupKind(a) == groupKind(b) && a.Name == b.Name && a.UID == b.UID
}

func groupKind(r *metav1.OwnerReference) schema.GroupKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind()
}

// takesPodsFrom decides whether the pods may leave a budget. Controllers such as that of Argo Rollouts orphan a ReplicaSet
// after an edit of their selector; a budget with a selector still covers its pods.
func (d departure) takesPodsFrom(b *v1alpha1.PodUnavailableBudget) bool {
	if target := b.Spec.TargetRef; target != nil && d.orphaned {
		kind := schema.GroupKind{Group: budget.GroupOf(target.APIVersion), Kind: target.Kind}
		if kind == groupKind(&d.controller) && target.Name == d.controller.Name ||
			kind == workload.KnativeService.GroupKind() && target.Name == d.service {
			return true
		}
	}
	return d.replaced
}

// deny returns the denial by a budget; nil if no pod leaves it.
func (d departure) deny(a *Action, b *v1alpha1.PodUnavailableBudget) *admission.Answer {
	if !d.takesPodsFrom(b) {
		return nil
	}
	message := fmt.Sprintf("%s would leave its controller, so PodUnavailableBudget %s may no longer protect its pods. "+
		"Ways out: scale %s %s to 0 first; or set spec.shadow of the budget to true, which only reports", a.Subject, b.Name, d.controller.Kind, d.controller.Name)
	return new(admission.Deny(DecisionDenied, withDetails(a, b.Name, message, metav1.StatusCause{Type: causeBudget, Message: message})))
}
