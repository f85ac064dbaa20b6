package v1alpha1

// One block of reasons feeds conditions, Kubernetes Events, metric labels and
// CloudEvents: what a person finds in one place can be searched for in all.
const (
	// ReasonBaseline: the version ran when the namespace was opted in.
	ReasonBaseline = "Baseline"
	// ReasonReleasePending: the workload is not yet known to be at this release.
	ReasonReleasePending = "ReleasePending"
	// ReasonRollingOut: pods of the version are not all there or not finished.
	ReasonRollingOut = "RollingOut"
	// ReasonJudging: pods are before the judge.
	ReasonJudging = "Judging"
	// ReasonAllPodsPassed: every current pod of the version was judged pass.
	ReasonAllPodsPassed = "AllPodsPassed"
	// ReasonCheckFailed: the server or a person failed at least one pod.
	ReasonCheckFailed = "CheckFailed"
	// ReasonFailedCheckLost: the workload is suspended for this version, but the
	// ChangeWorkload that knew the failed check was deleted.
	ReasonFailedCheckLost = "FailedCheckLost"
	// ReasonSuperseded: a newer template was applied before the end.
	ReasonSuperseded = "Superseded"

	// ReasonNoServerConfigured: no AlterShield server is configured.
	ReasonNoServerConfigured = "NoServerConfigured"
	// ReasonNoVerdict: the server said neither pass nor fail.
	ReasonNoVerdict = "NoVerdict"
	// ReasonVerdictReceived: the server or a person gave a verdict, pass or fail.
	ReasonVerdictReceived = "VerdictReceived"
	// ReasonVerdictTimedOut: no verdict came in time.
	ReasonVerdictTimedOut = "VerdictTimedOut"
	// ReasonPassedUnjudged: passed because nobody judged (no-verdict is Pass).
	ReasonPassedUnjudged = "PassedUnjudged"
	// ReasonHeldUnjudged: waits because nobody judged (no-verdict is Hold).
	ReasonHeldUnjudged = "HeldUnjudged"

	// ReasonFailedUnjudged: failed because nobody judged (no-verdict is Fail).
	ReasonFailedUnjudged = "FailedUnjudged"
	// ReasonJudgingOrder: the pods passed, the order as a whole is before the judge.
	ReasonJudgingOrder = "JudgingOrder"
	// ReasonOrderCheckFailed: the server or a person failed the order as a whole.
	ReasonOrderCheckFailed = "OrderCheckFailed"
	// ReasonOrderCheckSkipped: the server does not judge the order as a whole.
	ReasonOrderCheckSkipped = "OrderCheckSkipped"

	// ReasonOrderOpened: the server took the order.
	ReasonOrderOpened = "OrderOpened"
	// ReasonOrderNotAccepted: the server did not accept the order within
	// order-timeout: it rejected it or was unreachable.
	ReasonOrderNotAccepted = "OrderNotAccepted"
	// ReasonOrderPending: the server was not asked or did not answer yet.
	ReasonOrderPending = "OrderPending"

	// ReasonServerRejected: the server answered a call with an error code.
	ReasonServerRejected = "ServerRejected"
	// ReasonServerUnreachable: the call to the server got no usable answer.
	ReasonServerUnreachable = "ServerUnreachable"

	// ReasonSuspended: the workload was suspended.
	ReasonSuspended = "Suspended"
	// ReasonNotSuspended: the workload is not suspended for this release.
	ReasonNotSuspended = "NotSuspended"
	// ReasonBlockingDisabled: a check failed, but isBlockingUp is off.
	ReasonBlockingDisabled = "BlockingDisabled"
	// ReasonShadow: a check failed, or a release would have been refused, but
	// OpsConfigInfo shadow is on.
	ReasonShadow = "Shadow"
	// ReasonResumed: the hold and the suspension ended.
	ReasonResumed = "Resumed"
	// ReasonRepairAdmitted: an update with IgnoredSuspendLabel was admitted.
	ReasonRepairAdmitted = "RepairAdmitted"
	// ReasonRollbackAdmitted: an update to a successful version was admitted.
	ReasonRollbackAdmitted = "RollbackAdmitted"
	// ReasonReleaseDenied: an update of a suspended workload was refused.
	ReasonReleaseDenied = "ReleaseDenied"

	// ReasonSelfHealed: the pods of a release did not come up, and the workload
	// went back to the version that ran beside it.
	ReasonSelfHealed = "SelfHealed"
	// ReasonRolledBack: a release failed its check and the workload went back to
	// the newest version that succeeded, by itself.
	ReasonRolledBack = "RolledBack"
	// ReasonRollbackRequested: the workload went back because a person asked.
	ReasonRollbackRequested = "RollbackRequested"
	// ReasonRollbackDropped: a request to go back was not carried out.
	ReasonRollbackDropped = "RollbackDropped"
	// ReasonRollbackImpossible: a release should go back, and nothing is known to
	// be good.
	ReasonRollbackImpossible = "RollbackImpossible"
	// ReasonHistorySelected: the workload's selector matches the history that is
	// kept of it, so its controller would take it for its own; none is kept.
	ReasonHistorySelected = "HistorySelected"
	// ReasonReleaseCheckPassed: the server passed a release before it was admitted.
	ReasonReleaseCheckPassed = "ReleaseCheckPassed"
	// ReasonReleaseCheckFailed: the server failed a release, and it was refused.
	ReasonReleaseCheckFailed = "ReleaseCheckFailed"
	// ReasonReleaseUnchecked: the server said neither pass nor fail of a release.
	ReasonReleaseUnchecked = "ReleaseUnchecked"
	// ReasonServerMisconfigured: how the server is reached is configured wrong.
	ReasonServerMisconfigured = "ServerMisconfigured"
	// ReasonReleaseCheckThrottled: so many releases were asked about at once that
	// this one was not.
	ReasonReleaseCheckThrottled = "ReleaseCheckThrottled"

	// ReasonEventUndelivered: an event about the object reached no function. What
	// waits for it is sent again by its reconciler.
	ReasonEventUndelivered = "EventUndelivered"

	// ReasonApplied: the OpsConfigInfo counts.
	ReasonApplied = "Applied"
	// ReasonDuplicate: an older OpsConfigInfo has the same type.
	ReasonDuplicate = "Duplicate"
	// ReasonInvalid: type or content cannot be understood.
	ReasonInvalid = "Invalid"
	// ReasonWrongNamespace: the OpsConfigInfo is not in SystemNamespace.
	ReasonWrongNamespace = "WrongNamespace"
)
