package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// Conditions of a PodUnavailableBudget.
const (
	// BudgetGuarding is True when every replica of the webhook is known to decide
	// by this budget.
	BudgetGuarding apis.ConditionType = "Guarding"
	// BudgetSynced is True when the numbers follow from the present spec, also of a budget that covers
	// nothing. While it is False, ALLOWED is 0. After a change of the spec, every request that costs something is denied
	// until the numbers of the new spec are computed.
	BudgetSynced apis.ConditionType = "Synced"
)

// Conditions of a PodDeletionFlowControl.
const (
	// FlowControlOpen is True while a limit is reached or a rule is invalid: further
	// deletions are denied, or only reported in shadow mode.
	FlowControlOpen apis.ConditionType = "Open"
)

var (
	budgetConditions      = apis.NewLivingConditionSet(BudgetGuarding, BudgetSynced)
	flowControlConditions = apis.NewLivingConditionSet()
)

// GetConditionSet implements duckv1.KRShaped.
func (*PodUnavailableBudget) GetConditionSet() apis.ConditionSet { return budgetConditions }

// GetConditionSet implements duckv1.KRShaped.
func (*PodDeletionFlowControl) GetConditionSet() apis.ConditionSet { return flowControlConditions }

// GetGroupVersionKind implements kmeta.OwnerRefable.
func (*PodUnavailableBudget) GetGroupVersionKind() schema.GroupVersionKind {
	return SchemeGroupVersion.WithKind("PodUnavailableBudget")
}

// GetGroupVersionKind implements kmeta.OwnerRefable.
func (*PodDeletionFlowControl) GetGroupVersionKind() schema.GroupVersionKind {
	return SchemeGroupVersion.WithKind("PodDeletionFlowControl")
}

// GetStatus implements duckv1.KRShaped.
func (b *PodUnavailableBudget) GetStatus() *duckv1.Status { return &b.Status.Status }

// GetStatus implements duckv1.KRShaped.
func (f *PodDeletionFlowControl) GetStatus() *duckv1.Status { return &f.Status.Status }
