package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SystemNamespace is where Breakwater is installed and where OpsConfigInfo
// objects are read from.
const SystemNamespace = "altershieldoperator-system"

// ControllerUser is the name under which the API server knows our controller.
const ControllerUser = "system:serviceaccount:" + SystemNamespace + ":controller"

// Labels and their values, to the letter those of the AlterShield Operator.
const (
	// NamespaceLabel opts a namespace in when its value is NamespaceEnabled.
	NamespaceLabel = "admission-webhook-altershield"
	// NamespaceEnabled is the value of NamespaceLabel that opts in.
	NamespaceEnabled = "enabled"

	// VersionKey is a label of the workload, ChangeWorkload and ChangePod, and
	// an annotation of the workload (which the built-in controllers copy to
	// ReplicaSets, where a pod's version is read). Written by the webhook.
	VersionKey = "admission-webhook-altershield.antgroup.com/version"
	// DefenseStatusLabel says on a workload that a verdict about it is known.
	DefenseStatusLabel = "altershield.defense.antgroup.com/defense-status"
	// DefenseStatusProcessed is the one value of DefenseStatusLabel.
	DefenseStatusProcessed = "processed"
	// SuspendLabel holds a workload back; its value is the unix time, in
	// seconds, at which the suspension began.
	SuspendLabel = "altershield.defense.antgroup.com/suspend"
	// IgnoredSuspendLabel on an update says: this is the repair.
	IgnoredSuspendLabel = "altershield.defense.antgroup.com/ignored-suspend"
	// FinishedLabel on a pod says that its release is finished: it was Ready.
	FinishedLabel = "altershield.defense.antgroup.com/operate-finished"
	// FinishedValue is the one value of FinishedLabel.
	FinishedValue = "true"
	// DeploymentNameLabel on ChangeWorkload and ChangePod names the workload;
	// shortened with a hash when longer than 63 characters.
	DeploymentNameLabel = "app.kubernetes.io/deployment-name"
	// OrderLabel on a ChangeWorkload is the hash of its order at the server:
	// the way back from a callback to the object.
	OrderLabel = "app.ops.cloud.alipay.com/order"
)

// Annotations of a workload.
const (
	// AttemptAnnotation counts the templates that were applied to a workload,
	// as a decimal number from 1. 0 is the baseline: what ran already when the
	// namespace was opted in, and is not judged. Written by the webhook.
	AttemptAnnotation = "admission-webhook-altershield.antgroup.com/attempt"
	// BypassAnnotation records, as JSON of type Bypass, the update that was
	// admitted although the workload was suspended. Written by the webhook.
	BypassAnnotation = "altershield.defense.antgroup.com/bypass"
	// HoldAnnotation records, as JSON of type Hold, what was changed to stop a
	// rollout, so that only that is undone. Written with the hold; taken away
	// by the webhook together with the hold when a bypass is admitted.
	HoldAnnotation = "altershield.defense.antgroup.com/hold"
)

// BypassKind says why an update was admitted to a suspended workload.
type BypassKind string

// The kinds of bypass.
const (
	// BypassRepair is an update that carried IgnoredSuspendLabel.
	BypassRepair BypassKind = "repair"
	// BypassRollback is an update to a template whose version was a Success.
	BypassRollback BypassKind = "rollback"
)

// Bypass is the value of BypassAnnotation.
// +k8s:deepcopy-gen=false
type Bypass struct {
	Kind BypassKind `json:"kind"`
	// User is the name under which the API server knew the author.
	User string `json:"user"`
	// Suspend is the value of SuspendLabel that was bypassed: a suspension is
	// repaired once.
	Suspend string `json:"suspend"`
	// Attempt is the attempt that the update became.
	Attempt int64 `json:"attempt"`
	// Freeze is Hold.Freeze of the hold that the update undid.
	Freeze string `json:"freeze,omitempty"`
	// Time is when it was admitted.
	Time metav1.Time `json:"time"`
}

// Hold is the value of HoldAnnotation.
// +k8s:deepcopy-gen=false
type Hold struct {
	// Attempt is the attempt that was held.
	Attempt int64 `json:"attempt"`
	// Former is the value that the field of the kind that stops a roll-out had
	// before: spec.paused of a Deployment, for instance. Nil: it was absent.
	// The value that holds: the hold stopped nothing, and undoes nothing.
	Former any `json:"former,omitempty"`
	// Freeze is the value that SuspendLabel had before, which somebody else
	// had set and which comes back; empty: there was none.
	Freeze string `json:"freeze,omitempty"`
}
