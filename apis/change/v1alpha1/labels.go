package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SystemNamespace is where Breakwater is installed and where OpsConfigInfo
// objects are read from.
const SystemNamespace = "altershieldoperator-system"

// ControllerUser is the user name of our controller.
const ControllerUser = "system:serviceaccount:" + SystemNamespace + ":controller"

// Labels and values of the AlterShield Operator.
const (
	// NamespaceLabel opts a namespace in if its value is NamespaceEnabled.
	NamespaceLabel = "admission-webhook-altershield"
	// NamespaceEnabled is the value of NamespaceLabel that opts in.
	NamespaceEnabled = "enabled"

	// VersionKey is a label of the workload, ChangeWorkload and ChangePod, and an
	// annotation of the workload. The workload's controller copies the annotation to
	// its revisions, which identify the version of a pod. Written by the webhook.
	VersionKey = "admission-webhook-altershield.antgroup.com/version"
	// DefenseStatusLabel on a workload means that Breakwater decided about a release of it:
	// the release was suspended, resumed or ended, perhaps unjudged.
	DefenseStatusLabel = "altershield.defense.antgroup.com/defense-status"
	// DefenseStatusProcessed is the only value of DefenseStatusLabel.
	DefenseStatusProcessed = "processed"
	// SuspendLabel suspends a workload. Its value is the start of the suspension as
	// Unix time in seconds.
	SuspendLabel = "altershield.defense.antgroup.com/suspend"
	// IgnoredSuspendLabel marks an update as the repair.
	IgnoredSuspendLabel = "altershield.defense.antgroup.com/ignored-suspend"
	// FinishedLabel marks a pod that was Ready once.
	FinishedLabel = "altershield.defense.antgroup.com/operate-finished"
	// FinishedValue is the only value of FinishedLabel.
	FinishedValue = "true"
	// DeploymentNameLabel on ChangeWorkload and ChangePod names the workload;
	// names longer than 63 characters are shortened with a hash.
	DeploymentNameLabel = "app.kubernetes.io/deployment-name"
	// OrderFinalizer keeps a deleted ChangeWorkload until its order is closed at the server, at
	// most two minutes, and five seconds if its version is applied again. If the order is not open
	// yet, it keeps it for 15 s, in which a call may still open the order. A restart of the
	// controller may extend the limits of two minutes and 15 s, but not that of five seconds.
	OrderFinalizer = "app.ops.cloud.alipay.com/order"
	// OrderLabel on a ChangeWorkload is the hash of its order id. Callbacks use it to
	// find the object.
	OrderLabel = "app.ops.cloud.alipay.com/order"
)

// Annotations of a workload.
const (
	// AttemptAnnotation counts the templates that were applied to a workload, as a
	// decimal number from 1. 0 is the baseline: it ran when the namespace opted in,
	// and is not judged. Written by the webhook.
	AttemptAnnotation = "admission-webhook-altershield.antgroup.com/attempt"
	// BypassAnnotation records, as JSON of type Bypass, the update that was
	// admitted although the workload was suspended. Written by the webhook.
	BypassAnnotation = "altershield.defense.antgroup.com/bypass"
	// HoldAnnotation records, as JSON of type Hold, the previous value of the field that
	// was changed to stop a rollout, so that the end of the hold restores this value. It is
	// written together with the hold. The webhook removes both when it admits a bypass.
	HoldAnnotation = "altershield.defense.antgroup.com/hold"
)

// TraceparentAnnotation on a ChangeWorkload and its ChangePods is the W3C trace context of the release: the
// id of its trace, and its root span. The reconcilers that create the objects write it, if the release is traced.
const TraceparentAnnotation = "altershield.defense.antgroup.com/traceparent"

// BypassKind is the reason why an update of a suspended workload was admitted.
type BypassKind string

// The kinds of bypass.
const (
	// BypassRepair is an update with IgnoredSuspendLabel.
	BypassRepair BypassKind = "repair"
	// BypassRollback is an update to a version that succeeded.
	BypassRollback BypassKind = "rollback"
)

// Bypass is the value of BypassAnnotation.
// +k8s:deepcopy-gen=false
type Bypass struct {
	Kind BypassKind `json:"kind"`
	// User is the authenticated user name of the update.
	User string `json:"user"`
	// Suspend is the value of SuspendLabel that was bypassed: a suspension allows one
	// repair.
	Suspend string `json:"suspend"`
	// Attempt is the attempt of the update.
	Attempt int64 `json:"attempt"`
	// Freeze is Hold.Freeze of the hold that the update ended.
	Freeze string `json:"freeze,omitempty"`
	// Traffic is Hold.Traffic of that hold: the traffic of a Knative Service moves back when the
	// repair succeeds.
	Traffic *HeldTraffic `json:"traffic,omitempty"`
	// AnotherRepair: a person removed the annotation, which allows another repair. The webhook wrote it
	// again, because Freeze and Traffic are recorded nowhere else. It is removed with the suspension.
	AnotherRepair bool `json:"anotherRepair,omitempty"`
	// Ended: the suspension has ended. A person may freeze the workload again with the same value of SuspendLabel.
	Ended bool `json:"ended,omitempty"`
	// Time is the time of admission.
	Time metav1.Time `json:"time"`
}

// Hold is the value of HoldAnnotation.
// +k8s:deepcopy-gen=false
type Hold struct {
	// Attempt is the held attempt.
	Attempt int64 `json:"attempt"`
	// Former is the previous value of the field that stops a rollout (spec.paused of a
	// Deployment, for instance); nil if the field was absent. If Former is the value that
	// stops the rollout, the hold has not changed the field: it had this value, or there was
	// no rollout to stop. Then the end of the hold does not change it either.
	Former any `json:"former,omitempty"`
	// Freeze is the previous value of SuspendLabel, which a user set and which is
	// restored after the hold; empty if there was none.
	Freeze string `json:"freeze,omitempty"`
	// Unjudged: the rollout is held because pods or the order are unjudged. The hold
	// does not suspend the workload, so a newer template is admitted and ends it.
	Unjudged bool `json:"unjudged,omitempty"`
	// UntilJudged: only the traffic of a Knative Service is held, until the first batch passed. The
	// rollout continues, and the workload is not suspended.
	UntilJudged bool `json:"untilJudged,omitempty"`
	// Traffic is what the hold did with spec.traffic of a Knative Service; nil for other kinds.
	Traffic *HeldTraffic `json:"traffic,omitempty"`
}

// HeldTraffic is what a hold did with spec.traffic of a Knative Service.
// +k8s:deepcopy-gen=false
type HeldTraffic struct {
	// Failed are the Revisions that failed. They get no more traffic than they have.
	Failed []string `json:"failed,omitempty"`
	// To is the Revision that got their share, or that of the latest one; empty if none did.
	To string `json:"to,omitempty"`
	// Former is the previous value of spec.traffic; nil if it was not changed.
	Former []map[string]any `json:"former,omitempty"`
}

// HeldTrafficOf returns what a hold did with the traffic of a Knative Service, or nil. During a
// repair it is in the bypass annotation.
func HeldTrafficOf(labels, annotations map[string]string) *HeldTraffic {
	if hold := HoldOf(annotations); hold != nil {
		return hold.Traffic
	}
	if bypass := CurrentBypassOf(labels, annotations); bypass != nil {
		return bypass.Traffic
	}
	return nil
}

// RestorableTrafficOf returns the held traffic that the end of the hold or of the suspension restores, or
// nil. The end of the hold of an unjudged repair restores nothing: the suspension keeps the traffic until a
// repair succeeds.
func RestorableTrafficOf(labels, annotations map[string]string) *HeldTraffic {
	bypass := CurrentBypassOf(labels, annotations)
	if HoldOf(annotations).IsWithoutSuspension() && bypass != nil && bypass.Traffic != nil {
		return nil
	}
	return HeldTrafficOf(labels, annotations)
}

// FreezeOf returns the value with which a person had suspended the workload before its check failed, empty
// if nobody had, and whether the suspension has a record of it. During a repair it is in the bypass annotation.
func FreezeOf(labels, annotations map[string]string) (value string, recorded bool) {
	if hold := HoldOf(annotations); hold.Suspends() {
		return hold.Freeze, true
	}
	if bypass := CurrentBypassOf(labels, annotations); bypass != nil {
		return bypass.Freeze, true
	}
	return "", false
}
