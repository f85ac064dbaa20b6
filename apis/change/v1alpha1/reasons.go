package v1alpha1

// The reasons are shared by conditions, Kubernetes Events, metric labels and
// CloudEvents, so one search term finds all of them.

// Reasons of releases and batches.
const (
	// ReasonBaseline: the version ran when its namespace opted in.
	ReasonBaseline = "Baseline"
	// ReasonReleasePending: the cache does not show the workload at the version and
	// attempt of this release yet.
	ReasonReleasePending = "ReleasePending"
	// ReasonRollingOut: some pods of the version are missing or not finished.
	ReasonRollingOut = "RollingOut"
	// ReasonRolloutStuck: no batch was created for wait-threshold, and the workload reports that pods cannot be
	// created or that its progress deadline has passed.
	ReasonRolloutStuck = "RolloutStuck"
	// ReasonScaledToZero: the latest Revision of a Knative Service is Ready and has no pods to judge.
	ReasonScaledToZero = "ScaledToZero"
	// ReasonJudging: pods wait for a verdict.
	ReasonJudging = "Judging"
	// ReasonProgressing: the release continues by itself; condition Succeeded says how.
	ReasonProgressing = "Progressing"
	// ReasonAllPodsPassed: every current pod of the version passed.
	ReasonAllPodsPassed = "AllPodsPassed"
	// ReasonCheckFailed: a judge failed a pod, or an unjudged pod counts as failed, because a
	// setting such as no-verdict is Fail.
	ReasonCheckFailed = "CheckFailed"
	// ReasonFailedCheckLost: the workload is suspended for this version, but the
	// ChangeWorkload with the failed check was deleted.
	ReasonFailedCheckLost = "FailedCheckLost"
	// ReasonReleaseTimedOut: the rollout made no progress for release-timeout. The release
	// is judged again when the rollout makes progress.
	ReasonReleaseTimedOut = "ReleaseTimedOut"
	// ReasonSuperseded: a newer template was applied before the release ended.
	ReasonSuperseded = "Superseded"
)

// Reasons of verdicts.
const (
	// ReasonNoVerdict: a judge gave neither pass nor fail, or nothing before the release ended, or
	// there was no pod to judge.
	ReasonNoVerdict = "NoVerdict"
	// ReasonVerdictReceived: a judge gave a verdict, pass or fail.
	ReasonVerdictReceived = "VerdictReceived"
	// ReasonVerdictTimedOut: no verdict was received in time.
	ReasonVerdictTimedOut = "VerdictTimedOut"
	// ReasonVerdictContradicted: the server called back a pass without rules, and its
	// answers to retrieve never were a pass.
	ReasonVerdictContradicted = "VerdictContradicted"
	// ReasonPassedUnjudged: unjudged pods or an unjudged order passed; the message names the
	// setting that decided.
	ReasonPassedUnjudged = "PassedUnjudged"
	// ReasonHeldUnjudged: unjudged pods or an unjudged order wait for a verdict.
	ReasonHeldUnjudged = "HeldUnjudged"
	// ReasonFailedUnjudged: unjudged pods or an unjudged order failed.
	ReasonFailedUnjudged = "FailedUnjudged"
)

// Reasons of orders.
const (
	// ReasonOrderOpened: the server accepted the order.
	ReasonOrderOpened = "OrderOpened"
	// ReasonOrderNotAccepted: the server did not accept the order within order-timeout, because
	// it rejected it or was unreachable, or was not called within submit-timeout. The message
	// says which.
	ReasonOrderNotAccepted = "OrderNotAccepted"
	// ReasonOrderPending: the server was not called or has not answered yet.
	ReasonOrderPending = "OrderPending"
	// ReasonJudgingOrder: all pods passed, the order check has no verdict yet.
	ReasonJudgingOrder = "JudgingOrder"
	// ReasonOrderCheckFailed: the server or a person failed the order as a whole.
	ReasonOrderCheckFailed = "OrderCheckFailed"
	// ReasonOrderCheckSkipped: the server does not judge the order as a whole.
	ReasonOrderCheckSkipped = "OrderCheckSkipped"
)

// Reasons of calls to the server.
const (
	// ReasonNoServerConfigured: no AlterShield server is configured.
	ReasonNoServerConfigured = "NoServerConfigured"
	// ReasonServerMisconfigured: the configuration of the server is invalid.
	ReasonServerMisconfigured = "ServerMisconfigured"
	// ReasonServerRejected: the server answered a call with an error code. Function submit counts
	// code 901 as ReasonServerUnreachable.
	ReasonServerRejected = "ServerRejected"
	// ReasonNotSubmitted: no call was made within submit-timeout, because config-altershield was
	// invalid, the Broker or function submit was unreachable, or the circuit breaker was open.
	ReasonNotSubmitted = "NotSubmitted"
	// ReasonServerUnreachable: a call to the server got no usable answer (none, or a transient error
	// such as result code 901), or could not be made because of its rate limit, its circuit breaker, or a
	// configuration that could not be read.
	ReasonServerUnreachable = "ServerUnreachable"
)

// Reasons of suspensions.
const (
	// ReasonSuspended: the workload was suspended.
	ReasonSuspended = "Suspended"
	// ReasonNotSuspended: the workload is not suspended for this release.
	ReasonNotSuspended = "NotSuspended"
	// ReasonTrafficUntilJudged: the traffic of a Knative Service stays at the former Revision until the
	// first batch of its latest Revision passed, or, after a Revision failed, until a repair or a
	// rollback succeeded.
	ReasonTrafficUntilJudged = "TrafficUntilJudged"
	// ReasonResumedUnjudged: the rollout was held because pods or the order are unjudged, and somebody else than
	// Breakwater has resumed it.
	ReasonResumedUnjudged = "ResumedUnjudged"
	// ReasonWorkloadUnchanged: the workload could not be suspended, held or resumed, for example because a
	// policy denies it. The message has the error. Breakwater tries again.
	ReasonWorkloadUnchanged = "WorkloadUnchanged"
	// ReasonBlockingDisabled: a check failed, but isBlockingUp is disabled.
	ReasonBlockingDisabled = "BlockingDisabled"
	// ReasonShadow: a check failed, or a release would have been denied, but shadow
	// mode is enabled.
	ReasonShadow = "Shadow"
	// ReasonResumed: a hold ended, and with it the suspension, if there was one.
	ReasonResumed = "Resumed"
	// ReasonRepairAdmitted: an update with IgnoredSuspendLabel was admitted.
	ReasonRepairAdmitted = "RepairAdmitted"
	// ReasonRollbackAdmitted: an update to a version that succeeded was admitted.
	ReasonRollbackAdmitted = "RollbackAdmitted"
	// ReasonReleaseDenied: an update, a change of owner or a deletion of a suspended workload was
	// denied.
	ReasonReleaseDenied = "ReleaseDenied"
)

// ReasonImagesChanged is the reason of drift: images of pods or of a ReplicaSet were changed
// after its creation, and differ from the workload's template.
const ReasonImagesChanged = "ImagesChanged"

// ReasonNoTemplate is the reason of an Event: a workload has no pod template, so its releases are not judged.
const ReasonNoTemplate = "NoTemplate"

// Reasons of rollbacks.
const (
	// ReasonSelfHealed: pods of a release did not run, none or too few recovered, and Breakwater
	// rolled back to a version whose pods are all Ready or, if no other version has pods and
	// no pod of this one is Ready, to the newest version that succeeded.
	ReasonSelfHealed = "SelfHealed"
	// ReasonRolledBack: a release failed with ReasonCheckFailed or ReasonOrderCheckFailed, and
	// Breakwater rolled back to the newest version that succeeded.
	ReasonRolledBack = "RolledBack"
	// ReasonRollbackRequested: Breakwater rolled back on request of a person.
	ReasonRollbackRequested = "RollbackRequested"
	// ReasonRollbackDropped: a rollback request was dropped.
	ReasonRollbackDropped = "RollbackDropped"
	// ReasonRollbackImpossible: a rollback is due, but no version is known to be good,
	// Breakwater rolled back three times in a row, or the webhook missed a newer template.
	ReasonRollbackImpossible = "RollbackImpossible"
	// ReasonSavedTemplatesSelected: the workload's selector matches saved templates,
	// so its controller would adopt them; none are saved.
	ReasonSavedTemplatesSelected = "SavedTemplatesSelected"
)

// Reasons of release checks.
const (
	// ReasonReleaseCheckPassed: the server passed a release before its admission.
	ReasonReleaseCheckPassed = "ReleaseCheckPassed"
	// ReasonReleaseCheckFailed: the server failed a release. It was denied or, in shadow mode,
	// admitted and reported.
	ReasonReleaseCheckFailed = "ReleaseCheckFailed"
	// ReasonReleaseCheckNoVerdict: the release check ended without pass or fail, for whatever cause.
	ReasonReleaseCheckNoVerdict = "ReleaseCheckNoVerdict"
	// ReasonReleaseCheckThrottled: the limit of concurrent release checks was reached.
	ReasonReleaseCheckThrottled = "ReleaseCheckThrottled"
)

// Reasons of undelivered CloudEvents.
const (
	// ReasonEventUndelivered: the Broker could not deliver a CloudEvent to a function, which it
	// did not reach or which did not accept the event. The reconciler sends a wake-up again by
	// itself. It does not send a report again: a person can request a replay.
	ReasonEventUndelivered = "EventUndelivered"
	// ReasonEventReplayed: a report was sent again on request of a person.
	ReasonEventReplayed = "EventReplayed"
	// ReasonReplayDropped: a requested replay was dropped.
	ReasonReplayDropped = "ReplayDropped"
)

// Reasons of OpsConfigInfo and of configuration in ConfigMaps.
const (
	// ReasonApplied: the OpsConfigInfo is in effect.
	ReasonApplied = "Applied"
	// ReasonDuplicate: an older OpsConfigInfo has the same type.
	ReasonDuplicate = "Duplicate"
	// ReasonInvalid: the type or the content is invalid.
	ReasonInvalid = "Invalid"
	// ReasonWrongNamespace: the OpsConfigInfo is not in SystemNamespace.
	ReasonWrongNamespace = "WrongNamespace"
)
