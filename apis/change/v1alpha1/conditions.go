package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// Conditions of a ChangeWorkload. Succeeded is the one to wait for; the others
// inform and never turn Succeeded by themselves.
const (
	// WorkloadOrderAccepted: the server took the change order.
	WorkloadOrderAccepted apis.ConditionType = "OrderAccepted"
	// WorkloadOrderJudged: True when the server or a person passed the order as
	// a whole, False when they failed it or nobody judged it.
	WorkloadOrderJudged apis.ConditionType = "OrderJudged"
	// WorkloadJudged: False when pods passed that nobody judged.
	WorkloadJudged apis.ConditionType = "Judged"
	// WorkloadHeld: True while the workload is suspended because of this version.
	WorkloadHeld apis.ConditionType = "Held"
)

// Conditions of a ChangePod. Succeeded is True when every pod of the batch
// counts as passed.
const (
	// PodJudged: False when the batch ended and nobody judged it.
	PodJudged apis.ConditionType = "Judged"
)

var (
	changeWorkloadConditions = apis.NewBatchConditionSet()
	changePodConditions      = apis.NewBatchConditionSet()
	opsConfigInfoConditions  = apis.NewLivingConditionSet()
)

// GetConditionSet implements duckv1.KRShaped.
func (*ChangeWorkload) GetConditionSet() apis.ConditionSet { return changeWorkloadConditions }

// GetConditionSet implements duckv1.KRShaped.
func (*ChangePod) GetConditionSet() apis.ConditionSet { return changePodConditions }

// GetConditionSet implements duckv1.KRShaped.
func (*OpsConfigInfo) GetConditionSet() apis.ConditionSet { return opsConfigInfoConditions }

// GetGroupVersionKind implements kmeta.OwnerRefable.
func (*ChangeWorkload) GetGroupVersionKind() schema.GroupVersionKind {
	return SchemeGroupVersion.WithKind("ChangeWorkload")
}

// GetGroupVersionKind implements kmeta.OwnerRefable.
func (*ChangePod) GetGroupVersionKind() schema.GroupVersionKind {
	return SchemeGroupVersion.WithKind("ChangePod")
}

// GetGroupVersionKind implements kmeta.OwnerRefable.
func (*OpsConfigInfo) GetGroupVersionKind() schema.GroupVersionKind {
	return SchemeGroupVersion.WithKind("OpsConfigInfo")
}

// GetStatus implements duckv1.KRShaped.
func (c *ChangeWorkload) GetStatus() *duckv1.Status { return &c.Status.Status }

// GetStatus implements duckv1.KRShaped.
func (c *ChangePod) GetStatus() *duckv1.Status { return &c.Status.Status }

// GetStatus implements duckv1.KRShaped.
func (c *OpsConfigInfo) GetStatus() *duckv1.Status { return &c.Status.Status }
