package v1alpha1

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

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
	// IgnoredSuspendLabel marks an update as the repair. AlterShield Operator accepts any value.
	IgnoredSuspendLabel = "altershield.defense.antgroup.com/ignored-suspend"
	// NoRepair is the only value of IgnoredSuspendLabel that requests no repair.
	NoRepair = "false"
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

// SuspensionOf returns the value of SuspendLabel, "true" if a user has set it without a value, and the empty string if
// the workload is not suspended.
func SuspensionOf(labels map[string]string) string {
	value, suspended := labels[SuspendLabel]
	if suspended && value == "" {
		return "true"
	}
	return value
}

// SuspensionText says since when a workload is suspended, or by which label if its value is no time.
func SuspensionText(labels map[string]string) string {
	value := SuspensionOf(labels)
	seconds, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return fmt.Sprintf("suspended by label %s=%s", SuspendLabel, value)
	}
	return "suspended since " + time.Unix(seconds, 0).UTC().Format(time.RFC3339)
}

// annotationOf decodes the JSON of an annotation; nil if it is absent or malformed.
func annotationOf[T any](annotations map[string]string, key string) *T {
	var v T
	raw := annotations[key]
	if raw == "" || json.Unmarshal([]byte(raw), &v) != nil {
		return nil
	}
	return &v
}
