package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// Conditions of a ChangeWorkload. Wait for Succeeded; the other conditions inform and do
// not change Succeeded.
const (
	// ReleaseOrderAccepted: the server accepted the order.
	ReleaseOrderAccepted apis.ConditionType = "OrderAccepted"
	// ReleaseOrderJudged: True if the server or a person passed the order as a whole,
	// False if they failed it or it is unjudged.
	ReleaseOrderJudged apis.ConditionType = "OrderJudged"
	// ReleaseJudged: True if all pods of a complete rollout passed by a verdict, even if the
	// order has none, or if a verdict failed a pod; False if unjudged pods passed, failed or wait,
	// for a baseline, for a success without any pod, and if the server did not accept the order in time.
	ReleaseJudged apis.ConditionType = "Judged"
	// ReleaseHeld: True while the rollout is held because of this release. With reason
	// Suspended the workload is suspended, too; a rollout that was complete is not stopped.
	ReleaseHeld apis.ConditionType = "Held"
	// ReleaseDrifted: True while the release is the current one and images of its pods, or of
	// its ReplicaSet, were changed without a change of the workload; else absent.
	ReleaseDrifted apis.ConditionType = "Drifted"
)

// Conditions of a ChangeWorkload with the names of kstatus, which kubectl wait, Flux and
// Argo CD read. They repeat Succeeded and Held and add no fact.
const (
	// ReleaseReady: True if Succeeded is True, False if ReleaseStalled is True.
	ReleaseReady = apis.ConditionReady
	// ReleaseReconciling: True while the release continues by itself, else absent.
	ReleaseReconciling apis.ConditionType = "Reconciling"
	// ReleaseStalled: True if the release failed or is held; else absent. A person decides, unless
	// a late verdict ends the hold or a pod becomes Ready after a timeout.
	ReleaseStalled apis.ConditionType = "Stalled"
)

// Conditions of a ChangePod. Succeeded is True if every pod of the batch counts as
// passed.
const (
	// BatchJudged: False if the batch ended unjudged, or is held because it is unjudged so far.
	BatchJudged apis.ConditionType = "Judged"
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
