package events

import "slices"

// The event types. An incompatible change of the data gets a new type with the
// next version.
const (
	// TypePodFinished: a pod of a release is Ready and labeled. Data is PodFinished.
	TypePodFinished = "dev.breakwater.pod.finished.v1"

	// TypeChangePodReady: a batch needs a call to the server, or the verdict of another
	// judge. Data is ChangePodReady.
	TypeChangePodReady = "dev.breakwater.changepod.ready.v1"
	// TypeChangePodVerdict: a batch was judged. Data is JudgeVerdict if another judge than
	// the server judged. If the server judged, it is ExternalVerdict on the way to the callback
	// and ChangePodVerdict inside the cluster.
	TypeChangePodVerdict = "dev.breakwater.changepod.verdict.v1"

	// TypeOrderReady: the order of a release needs a call to the server. Condition Ready of a
	// release is something else. Data is OrderReady.
	TypeOrderReady = "dev.breakwater.order.ready.v1"
	// TypeOrderVerdict: the server judged the order of a release as a whole. Data is
	// OrderVerdict. The server calls back with a TypeChangePodVerdict, or in JSON, and the id
	// of the order's node; by this id the callback recognizes that the verdict is about the
	// order.
	TypeOrderVerdict = "dev.breakwater.order.verdict.v1"

	// TypeChangeWorkloadStarted and the types below follow a release. Data is
	// ChangeWorkload.
	TypeChangeWorkloadStarted    = "dev.breakwater.changeworkload.started.v1"
	TypeChangeWorkloadProgressed = "dev.breakwater.changeworkload.progressed.v1"
	TypeChangeWorkloadSucceeded  = "dev.breakwater.changeworkload.succeeded.v1"
	TypeChangeWorkloadSuspended  = "dev.breakwater.changeworkload.suspended.v1"
	TypeChangeWorkloadFailed     = "dev.breakwater.changeworkload.failed.v1"
	TypeChangeWorkloadRolledBack = "dev.breakwater.changeworkload.rolledback.v1"
	TypeChangeWorkloadBypassed   = "dev.breakwater.changeworkload.bypassed.v1"

	// TypeReleaseDenied: admission denied an update or the deletion of a suspended workload,
	// or a release that did not pass its release check. Data is ReleaseDenied.
	TypeReleaseDenied = "dev.breakwater.release.denied.v1"

	// TypePermissionRequested and the types below follow the permissions of a
	// pod. Data is Permission.
	TypePermissionRequested = "dev.breakwater.permission.requested.v1"
	TypePermissionGranted   = "dev.breakwater.permission.granted.v1"
	TypePermissionDenied    = "dev.breakwater.permission.denied.v1"
	TypePermissionRevoked   = "dev.breakwater.permission.revoked.v1"
	TypePermissionLeaked    = "dev.breakwater.permission.leaked.v1"

	// TypeBreakerOpened and TypeBreakerClosed: the breaker of a pod's permissions
	// opened or closed. Data is PodBreaker.
	TypeBreakerOpened = "dev.breakwater.breaker.opened.v1"
	TypeBreakerClosed = "dev.breakwater.breaker.closed.v1"

	// TypeDeletionDenied: a guard denied deletions, evictions or in-place updates
	// of pods, or a cascading deletion. Data is DeletionDenied.
	TypeDeletionDenied = "dev.breakwater.deletion.denied.v1"
	// TypeDeletionFlowOpened and TypeDeletionFlowClosed: the breaker of a flow
	// control opened or closed. Data is DeletionFlow.
	TypeDeletionFlowOpened = "dev.breakwater.deletionflow.opened.v1"
	TypeDeletionFlowClosed = "dev.breakwater.deletionflow.closed.v1"
)

// Types returns every type, in the order of the table in the package doc.
func Types() []string {
	return []string{
		TypePodFinished,
		TypeChangePodReady,
		TypeChangePodVerdict,
		TypeOrderReady,
		TypeOrderVerdict,
		TypeChangeWorkloadStarted,
		TypeChangeWorkloadProgressed,
		TypeChangeWorkloadSucceeded,
		TypeChangeWorkloadSuspended,
		TypeChangeWorkloadFailed,
		TypeChangeWorkloadRolledBack,
		TypeChangeWorkloadBypassed,
		TypeReleaseDenied,
		TypePermissionRequested,
		TypePermissionGranted,
		TypePermissionDenied,
		TypePermissionRevoked,
		TypePermissionLeaked,
		TypeBreakerOpened,
		TypeBreakerClosed,
		TypeDeletionDenied,
		TypeDeletionFlowOpened,
		TypeDeletionFlowClosed,
	}
}

// TypeLabel returns a type as a value of a metric label: "other" if it is unknown, which
// bounds the label.
func TypeLabel(t string) string {
	if !slices.Contains(Types(), t) {
		return "other"
	}
	return t
}
