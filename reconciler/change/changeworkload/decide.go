package changeworkload

import (
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/deadline"
	"github.com/breakwater-dev/breakwater/internal/knativetraffic"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// Input is the input of Decide.
type Input struct {
	Now time.Time
	// StepWokenSince is the time from which submit-timeout counts for the step in
	// status.orderStep (callqueue.WokenSince); zero while its call waits in the queue of this
	// process.
	StepWokenSince time.Time
	// DecidingSince is the time of the first decision of this process since it leads a bucket, or of the first one
	// after the last opt-in of the namespace; zero means long ago. A deadline before DecidingSince plus a grace time is moved to that time
	// (resend.ExtendDeadline): perhaps no process ran before that could wake function submit.
	DecidingSince    time.Time
	Settings         settings.Settings
	ServerConfigured bool
	ChangeWorkload   *v1alpha1.ChangeWorkload
	Workload         Workload
	// Revisions are the Revisions of a Knative Service; of other kinds there are none.
	Revisions Revisions
	// LatestReplicaSets are the names of the ReplicaSets of the latest Revision of a Knative Service; empty
	// if none is cached yet, and for other kinds.
	LatestReplicaSets []string
	// JudgeBeforeTraffic: a new Revision of the Knative Service gets no traffic until its first
	// batch passed. The webhook holds the traffic, if it can, with the release.
	JudgeBeforeTraffic bool
	// ExcludedNodes is the number of nodes that the release does not wait for; Workload does not count them.
	ExcludedNodes workload.ExcludedNodes
	// Pods are the existing pods of this version and attempt, without Later.
	Pods []Pod
	// Later is the number of existing pods that are not judged (withoutLater), without those on nodes that are not Ready.
	Later int
	// ChangePods are the batches of this ChangeWorkload.
	ChangePods []*v1alpha1.ChangePod
	// Drift are the images of the release that differ from the workload's template.
	Drift []DriftedImage
	// DeliveredAnnouncements are the ids of the events of those announcements that the
	// Broker has accepted.
	DeliveredAnnouncements map[string]bool
}

// Workload is the part of a workload of any kind that a decision depends on.
type Workload struct {
	// Version and Attempt are the current ones.
	Version string
	Attempt int64
	// Replicas is the desired number of pods, without those that are not judged.
	Replicas int32
	// Updated: the desired pods exist, and no pod of an earlier version does.
	Updated bool
	// Surged: as many pods of the current version exist as are desired, and pods of an earlier version, too.
	Surged bool
	// Unavailable is how many of Replicas are not available.
	Unavailable int32
	// Misscheduled is how many Ready nodes have a pod that Replicas does not include, such as nodes that
	// became Ready a moment ago.
	Misscheduled int32
	// Stuck is why its controller reports that the rollout makes no progress, or empty.
	Stuck string
	// Suspend is SuspensionOf the labels; empty when not suspended.
	Suspend string
	// Hold is what was changed to stop the rollout, or nil.
	Hold *v1alpha1.Hold
	// HoldState says whether the rollout is still stopped.
	HoldState HoldState
	// Bypass is the last update that was admitted during the current suspension, or nil.
	Bypass *v1alpha1.Bypass
	// HasDefenseStatus: the workload has DefenseStatusLabel.
	HasDefenseStatus bool
	// IsRollback: the current release is a rollback.
	IsRollback bool
	// KnativeService: the workload is a Knative Service. Its autoscaler may delete pods that get no requests, and a
	// deleted pod that passed still counts.
	KnativeService bool
	// Traffic is spec.traffic of a Knative Service; of other kinds there is none.
	Traffic knativetraffic.Split
	// OfKruiseRollout: OpenKruise Rollouts pauses the Deployment and replaces its pods itself.
	OfKruiseRollout bool
}

// HoldState says whether a rollout is still stopped after it was held.
type HoldState int

// The states of a hold.
const (
	// HoldInForce: no rollout continues despite the hold, or there is no hold.
	HoldInForce HoldState = iota
	// HoldResumed: the hold has stopped the rollout, and somebody else than Breakwater has resumed it.
	HoldResumed
	// HoldPauseEnded: the hold has changed nothing, and pods of an earlier version are being replaced. The rollout was
	// paused by a user, who has ended the pause.
	HoldPauseEnded
)

// Pod is a pod of the version.
type Pod struct {
	v1alpha1.PodSummary
	// Finished: the pod is Ready, or has FinishedLabel because it was. The label
	// comes some time after Ready, because its writes are rate limited. It does not
	// count if the kind updates pods in place, or if the template has it.
	Finished bool
	// OnNotReadyNode: neither its node nor the pod is Ready.
	OnNotReadyNode bool
	// ReadySince is when the pod became Ready; zero when it is not.
	ReadySince time.Time
	Created    time.Time
}

// Action is a change of the workload.
type Action string

// The actions.
const (
	// ActionNone does not change the workload.
	ActionNone Action = ""
	// ActionSuspend suspends the workload and holds its rollout: a check failed, or is
	// unjudged and counts as failed.
	ActionSuspend Action = "Suspend"
	// ActionMoveTraffic moves the traffic of further Revisions of a suspended Knative Service.
	ActionMoveTraffic Action = "MoveTraffic"
	// ActionHold only holds the rollout, because pods or the order are unjudged. It ends
	// a suspension by this release, whose fail was overruled.
	ActionHold Action = "Hold"
	// ActionResume undoes the hold and ends the suspension.
	ActionResume Action = "Resume"
	// ActionSetDefenseStatus only sets DefenseStatusLabel.
	ActionSetDefenseStatus Action = "SetDefenseStatus"
)

// Decision is the state of a release and what to do next.
type Decision struct {
	Phase  v1alpha1.ReleasePhase
	Reason string
	// Detail is the message of conditions and Events.
	Detail string
	Pods   PodOutcomes
	// Batches are the pods of the ChangePods to create.
	Batches [][]v1alpha1.PodSummary
	Action  Action
	// ActionError is why the workload could not be changed, or nil. Decide does not set it.
	ActionError error
	// Order is the state of the order check.
	Order Order
	// OrderPending: the server has not accepted the order yet.
	OrderPending bool
	// HeldUnaccepted: the server has not accepted the order in time, and the policy is Hold.
	// With another policy Phase is Failed or Suspend, with reason OrderNotAccepted.
	HeldUnaccepted bool
	// unjudgedReason is the reason of OrderJudged if the order is unjudged.
	unjudgedReason string
	// Probation is the probation of the release, or nil.
	Probation *v1alpha1.Probation
	// RolledOutPods is status.rolledOutPods.
	RolledOutPods int32
	// Deadline is when the decision changes without an event; zero means never.
	Deadline time.Time
}

// Decide derives the state of a release.
func Decide(in Input) Decision {
	d := decideRelease(in)
	d.Probation = probationOf(in, d.Phase)
	d.RolledOutPods = rolledOutPods(in, d)
	d.Deadline = deadline.Earliest(d.Deadline, futureLook(d.Probation, in.Now))
	return d
}

// decideRelease is Decide without the probation and RolledOutPods.
func decideRelease(in Input) Decision {
	c := in.ChangeWorkload
	d := Decision{Pods: podOutcomes(in), Order: Order{Outcome: v1alpha1.OutcomePending, Step: c.Status.OrderStep}}
	switch {
	case c.Spec.Attempt == 0:
		d.Phase, d.Reason = v1alpha1.ReleaseSuccess, v1alpha1.ReasonBaseline
		d.Detail = "the version ran when its namespace was opted in and is not judged"
		return d
	case !isCurrent(in):
		return decideNotCurrent(in, d)
	case len(d.Pods.Failed) > 0:
		return decideFailedPods(in, d)
	case orderFailed(in):
		return decideFailedOrder(in, d)
	case checkLost(in):
		d.Phase, d.Reason = v1alpha1.ReleaseSuspend, v1alpha1.ReasonFailedCheckLost
		d.Detail = "the workload is suspended, but the ChangeWorkload with the failed check was deleted: repair the workload or roll it back"
		return d
	case c.Status.Phase == v1alpha1.ReleaseSuccess && !hasPodsToJudge(in, d.Pods):
		// Pods that were created after the release ended are not part of it.
		d.Phase, d.Reason, d.Detail = v1alpha1.ReleaseSuccess, reasonOfSucceeded(c), messageOfSucceeded(c)
		if d.Reason == v1alpha1.ReasonNoVerdict && succeedsWithPods(in, d.Pods) { // a late verdict
			d.Reason, d.Detail = v1alpha1.ReasonAllPodsPassed, d.Pods.summary()
		}
		d.Action = successAction(in)
		d.Order = decideCloseOfSuccess(in, d.Pods)
		return d
	case c.Status.Phase == v1alpha1.ReleaseFailed && ended(c):
		d.Phase, d.Reason, d.Detail = c.Status.Phase, reasonOfSucceeded(c), messageOfSucceeded(c)
		d.Order = decideClose(in, v1alpha1.OrderCancel)
		if in.Workload.complete() {
			// The version is not judged, so nothing else could end a suspension
			// that it was admitted to repair.
			d.Action = successAction(in)
		} else if in.Workload.Hold.IsWithoutSuspension() || suspendedByRelease(in) {
			// The policy was Hold or Fail when the order was not accepted. A release that failed a check does
			// not get here.
			d.Action = ActionResume
		}
		return d
	default:
		return decideRollout(in, d)
	}
}

// decideFailedPods decides a current release with failed pods.
func decideFailedPods(in Input, d Decision) Decision {
	d.Phase, d.Reason, d.Detail = v1alpha1.ReleaseSuspend, v1alpha1.ReasonCheckFailed, d.Pods.failure()
	// The existing pods are still judged, so that a person who overrules the
	// fail need not wait for them. Pods that were created after a Success are not judged.
	if in.ChangeWorkload.Status.Phase != v1alpha1.ReleaseSuccess {
		d.Batches, d.Deadline = decideBatches(in)
	}
	d.Action = suspendAction(in)
	d.Order = decideOrder(in, false)
	if d.Order.Outcome == v1alpha1.OutcomeFail {
		d.Batches, d.Deadline = nil, time.Time{}
	}
	return d
}

// decideFailedOrder decides a current release whose order check failed. No batch is created or started: the fail is for
// all of them.
func decideFailedOrder(in Input, d Decision) Decision {
	d.Order = decideOrder(in, false)
	d.Phase, d.Reason = v1alpha1.ReleaseSuspend, v1alpha1.ReasonOrderCheckFailed
	d.Detail = "the order check failed: " + d.Order.Detail
	if failsOnlyUnjudged(in) {
		d.Reason, d.Detail = v1alpha1.ReasonFailedUnjudged, orderUnjudgedDetail(in, d.Order)
	}
	d.Action = suspendAction(in)
	return d
}

// decideRollout decides a current release that has neither failed nor ended.
func decideRollout(in Input, d Decision) Decision {
	pending := in.ServerConfigured && !in.ChangeWorkload.Status.Order.Opened()
	ready := rolloutPassed(in, d.Pods)
	d.Order = decideOrder(in, ready)
	// Without an order the verdicts are those of a person or of another judge than the server.
	if ready && (!pending || d.Pods.allJudged()) {
		return decideAllPassed(in, d, pending)
	}
	if pending {
		due := orderDeadline(in)
		late := !due.IsZero() && !in.Now.Before(due)
		if late && in.Settings.PolicyOfUnacceptedOrder() != v1alpha1.NoVerdictHold {
			return decideOrderNotAccepted(in, d)
		}
		d.OrderPending, d.HeldUnaccepted = true, late
		if !late {
			d.Deadline = due
		}
	}

	var next time.Time
	d.Batches, next = decideBatches(in)
	d.Deadline = deadline.Earliest(deadline.Earliest(d.Deadline, next), d.Order.Deadline)
	d.Phase, d.Reason, d.Detail = decideRunning(in, d)
	if d.Reason == v1alpha1.ReasonRollingOut || d.Reason == v1alpha1.ReasonRolloutStuck {
		d.timeOut(in)
	}
	d.Action = runningAction(in, d)
	return d
}

// isCurrent reports whether the release is the workload's current one.
func isCurrent(in Input) bool {
	return in.Workload.Version == in.ChangeWorkload.Spec.Reversion && in.Workload.Attempt == in.ChangeWorkload.Spec.Attempt
}

// rolloutPassed reports whether the rollout is complete and all its pods passed.
func rolloutPassed(in Input, pods PodOutcomes) bool {
	return in.Workload.complete() && pods.allPassed(requiredPods(in)) && latestInBatch(in)
}

// noPodDetail is the message of a release that succeeds without pods.
const noPodDetail = "the version had no pod when its rollout ended; its next pods will be judged"

// decideAllPassed decides a release whose pods all passed: the outcome of the
// order check decides.
func decideAllPassed(in Input, d Decision, pending bool) Decision {
	d.Phase, d.Reason, d.Detail = v1alpha1.ReleaseSuccess, v1alpha1.ReasonAllPodsPassed, d.Pods.summary()
	if !succeedsWithPods(in, d.Pods) {
		d.Reason, d.Detail = v1alpha1.ReasonNoVerdict, noPodDetail
	}
	o := d.Order
	switch {
	case pending || !in.ServerConfigured || o.Outcome == v1alpha1.OutcomePass:
	case o.Outcome == v1alpha1.OutcomePending:
		d.Phase, d.Reason, d.Deadline = v1alpha1.ReleaseRunning, v1alpha1.ReasonJudgingOrder, o.Deadline
		d.Detail += "; the order check has no verdict yet"
	case o.Skipped:
		d.Detail += "; " + o.Detail
	default:
		d.Detail += "; " + orderUnjudgedDetail(in, o)
		switch in.Settings.RuleOfOrder(in.ChangeWorkload).Policy {
		case v1alpha1.NoVerdictHold:
			d.Phase, d.Reason, d.unjudgedReason, d.Deadline = v1alpha1.ReleaseRunning, v1alpha1.ReasonHeldUnjudged, v1alpha1.ReasonHeldUnjudged, o.Deadline
		case v1alpha1.NoVerdictFail:
			d.Phase, d.Reason, d.unjudgedReason = v1alpha1.ReleaseSuspend, v1alpha1.ReasonFailedUnjudged, v1alpha1.ReasonFailedUnjudged
			d.Action = suspendAction(in)
		case v1alpha1.NoVerdictPass:
			d.unjudgedReason = v1alpha1.ReasonPassedUnjudged
		}
	}
	switch d.Phase {
	case v1alpha1.ReleaseSuccess:
		d.Action = successAction(in)
		if end := decideCloseOfSuccess(in, d.Pods); end.WakeSubmit {
			d.Order.Step, d.Order.WakeSubmit, d.Order.WakeFor = end.Step, true, resend.ForCall
		} else {
			d.Order.WakeSubmit = false
		}
	case v1alpha1.ReleaseRunning:
		d.Action = runningAction(in, d)
	default:
	}
	return d
}

// decideRunning returns phase, reason and message of a release that has not ended.
func decideRunning(in Input, d Decision) (v1alpha1.ReleasePhase, string, string) {
	if d.HeldUnaccepted {
		return v1alpha1.ReleaseInit, v1alpha1.ReasonOrderPending, notAccepted(in)
	}
	if d.OrderPending {
		return v1alpha1.ReleaseInit, v1alpha1.ReasonOrderPending, "the server has not accepted the order yet"
	}
	if n := d.Pods.HeldUnjudged; n > 0 && n == len(d.Pods.Checking) && len(d.Batches) == 0 && len(d.Pods.Preparing) == 0 {
		return v1alpha1.ReleaseRunning, v1alpha1.ReasonHeldUnjudged, d.Pods.summary()
	}
	if len(d.Pods.Checking) > 0 || len(d.Batches) > 0 {
		return v1alpha1.ReleaseRunning, v1alpha1.ReasonJudging, d.Pods.summary()
	}
	if in.Workload.KnativeService && in.Workload.complete() && len(d.Pods.Preparing) == 0 {
		request := "a request"
		if in.Workload.Hold.IsUntilJudged() {
			request = "a request to the address of its tag"
		}
		return v1alpha1.ReleaseRunning, v1alpha1.ReasonScaledToZero, "the latest Revision has no pods: it is judged when " + request +
			", or annotation autoscaling.knative.dev/min-scale, starts one; " + d.Pods.summary()
	}
	missing := len(d.Pods.Preparing) > 0 || len(d.Pods.Passed) < int(in.Workload.Replicas)
	if missing && !in.Now.Before(timeoutsSince(in).Add(in.Settings.WaitThreshold)) {
		reason := v1alpha1.ReasonRollingOut
		if in.Workload.Stuck != "" {
			reason = v1alpha1.ReasonRolloutStuck
		}
		return v1alpha1.ReleaseNoNewBatch, reason,
			"no batch was created for " + in.Settings.WaitThreshold.String() + " (wait-threshold): " + rolloutSummary(in, d)
	}
	return v1alpha1.ReleaseRunning, v1alpha1.ReasonRollingOut, rolloutSummary(in, d)
}

// rolloutSummary is the summary of the pods and why the rollout is stuck.
func rolloutSummary(in Input, d Decision) string {
	if in.Workload.Stuck == "" {
		return d.Pods.summary()
	}
	return d.Pods.summary() + "; " + in.Workload.Stuck
}

// timeOut fails a release whose rollout makes no progress, though Breakwater does not stop it. A pod that is being judged has
// timeouts of its own. A timeout is not a verdict: the suspension that the release was admitted
// to repair stays, and a pod that becomes Ready later is judged.
func (d *Decision) timeOut(in Input) {
	due := timeoutsSince(in).Add(in.Settings.ReleaseTimeout)
	if in.Now.Before(due) {
		d.Deadline = deadline.Earliest(d.Deadline, due)
		return
	}
	d.Phase, d.Reason = v1alpha1.ReleaseFailed, v1alpha1.ReasonReleaseTimedOut
	d.Detail = "the rollout made no progress for " + in.Settings.ReleaseTimeout.String() + " (release-timeout): " + rolloutSummary(in, *d)
	switch {
	case in.Workload.Suspend == "":
	case in.Workload.Bypass.UsesRepair():
		d.Detail += "; the workload stays suspended: remove its annotation " + v1alpha1.BypassAnnotation + " to release another repair"
	default:
		d.Detail += "; the workload stays suspended: release a repair"
	}
}

// hasPodsToJudge reports whether a release that succeeded without pods, as at 0 replicas, has pods.
func hasPodsToJudge(in Input, pods PodOutcomes) bool {
	return len(in.Pods) > 0 && !succeedsWithPods(in, pods)
}

// succeedsWithPods reports whether a pod of a release that succeeds or has succeeded passed. The workload may
// have been scaled to 0 while the only pods in a batch had no verdict.
func succeedsWithPods(in Input, pods PodOutcomes) bool {
	return pods.AnyPassed || len(in.ChangePods) > 0 && in.ChangeWorkload.SucceededWithPods()
}

// checkLost reports whether this release was suspended by an earlier ChangeWorkload
// that somebody deleted. That must not end the hold, so the new ChangeWorkload keeps
// it and judges nothing.
func checkLost(in Input) bool {
	c := in.ChangeWorkload
	return suspendedByRelease(in) && (isNew(c) || reasonOfSucceeded(c) == v1alpha1.ReasonFailedCheckLost)
}

// isNew reports whether the ChangeWorkload has no decision yet.
func isNew(c *v1alpha1.ChangeWorkload) bool {
	reason := reasonOfSucceeded(c)
	return c.Status.Phase == v1alpha1.ReleaseInit && (reason == "" || reason == v1alpha1.ReasonReleasePending)
}
