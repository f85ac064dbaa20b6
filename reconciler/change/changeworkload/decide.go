package changeworkload

import (
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

// Input is everything that the state of a ChangeWorkload follows from.
type Input struct {
	Now time.Time
	// Up is when this process began to decide; zero when that does not matter.
	// What ended while nobody was there to wake function submit is given
	// retrieveGrace from then on.
	Up               time.Time
	Settings         settings.Settings
	ServerConfigured bool
	ChangeWorkload   *v1alpha1.ChangeWorkload
	Workload         Workload
	// Pods are the pods of this version and attempt that are there.
	Pods []Pod
	// ChangePods are the batches of this ChangeWorkload.
	ChangePods []*v1alpha1.ChangePod
}

// Workload is what matters of the workload, whatever its kind.
type Workload struct {
	// Version and Attempt are the current ones.
	Version string
	Attempt int64
	// Replicas is how many pods are wanted.
	Replicas int32
	// Complete: the roll-out of the current version is over and all is Ready.
	Complete bool
	// Suspend is the value of SuspendLabel; empty when not suspended.
	Suspend string
	// Hold is what was changed to stop a roll-out, or nil.
	Hold *v1alpha1.Hold
	// Bypass is the last update that was admitted to a suspended workload, or nil.
	Bypass *v1alpha1.Bypass
	// Processed: DefenseStatusLabel is there.
	Processed bool
	// IsRollback: the current version is a way back.
	IsRollback bool
}

// Pod is a pod of the version.
type Pod struct {
	v1alpha1.PodSummary
	// Finished: the pod is Ready, or was: it carries FinishedLabel. The label comes
	// later than what it says, and only in its own time (reconciler/change/pod).
	Finished bool
	// ReadySince is when it became Ready; zero when it is not.
	ReadySince time.Time
}

// Action is what is to be done to the workload.
type Action string

// The actions.
const (
	// ActionNone leaves the workload alone.
	ActionNone Action = ""
	// ActionHold suspends the workload and stops its roll-out.
	ActionHold Action = "Hold"
	// ActionResume undoes our hold and ends the suspension.
	ActionResume Action = "Resume"
	// ActionProcessed only marks the workload as processed.
	ActionProcessed Action = "Processed"
)

// Decision is the state that follows, and what is to be done.
type Decision struct {
	Phase  v1alpha1.WorkloadPhase
	Reason string
	// Detail says the reason to a person.
	Detail string
	Pods   PodOutcomes
	// Batches are the pods to put before the judge, a ChangePod each.
	Batches [][]v1alpha1.PodSummary
	Action  Action
	// Order is what is known of the order as a whole, and what it waits for.
	Order Order
	// OrderPending: the server has not taken the order yet.
	OrderPending bool
	// unjudgedOrder is the reason of OrderJudged when nobody judged it in time.
	orderUnjudgedReason string
	// Deadline is when time alone changes the decision; zero when it never does.
	Deadline time.Time
}

// Decide derives the state of a release.
func Decide(in Input) Decision {
	c := in.ChangeWorkload
	d := Decision{Pods: podOutcomes(in), Order: Order{Outcome: v1alpha1.OutcomePending, Step: c.Status.OrderStep}}
	switch {
	case c.Spec.Attempt == 0:
		d.Phase, d.Reason = v1alpha1.WorkloadSuccess, v1alpha1.ReasonBaseline
		d.Detail = "the version ran when its namespace was opted in and is not judged"
		return d
	case in.Workload.Version != c.Spec.Reversion || in.Workload.Attempt != c.Spec.Attempt:
		// Nothing that is learnt of an old version touches the workload.
		d.Phase, d.Reason, d.Detail = c.Status.Phase, succeededReason(c), succeededMessage(c)
		if isNew(c) {
			d.Reason, d.Detail = v1alpha1.ReasonReleasePending, "the workload is not yet known to be at this version and attempt"
		}
		newer := replaced(in)
		if newer {
			d.Order = decideClose(in, closeState(in))
		}
		if newer && !ended(c.Status.Phase) && c.Status.Phase != v1alpha1.WorkloadSuspend {
			d.Phase, d.Reason, d.Detail = v1alpha1.WorkloadFailed, v1alpha1.ReasonSuperseded,
				"a newer template was applied before this version was judged to its end"
		}
		if newer && c.Status.Phase == v1alpha1.WorkloadSuccess {
			d.failLate(c)
		}
		return d
	case len(d.Pods.Failed) > 0:
		d.Phase, d.Reason, d.Detail = v1alpha1.WorkloadSuspend, v1alpha1.ReasonCheckFailed, d.Pods.failure()
		// The pods that are there go on to be judged: a person who overrules the
		// fail should not have to wait for them.
		d.Batches, d.Deadline = decideBatches(in)
		d.Action = holdAction(in)
		d.Order = decideOrder(in, false)
		if d.Order.Outcome == v1alpha1.OutcomeFail {
			d.Batches, d.Deadline = nil, time.Time{}
		}
		return d
	case orderCheckFailed(in):
		// No batch is made or started: the server has failed all of them.
		d.Order = decideOrder(in, false)
		d.Phase, d.Reason = v1alpha1.WorkloadSuspend, v1alpha1.ReasonOrderCheckFailed
		d.Detail = "the order as a whole failed its check: " + d.Order.Detail
		if orderUnjudged(in) {
			d.Reason, d.Detail = v1alpha1.ReasonUnjudgedFail, "nobody judged the order as a whole: "+d.Order.Detail
		}
		d.Action = holdAction(in)
		return d
	case checkLost(in):
		d.Phase, d.Reason = v1alpha1.WorkloadSuspend, v1alpha1.ReasonCheckLost
		d.Detail = "the workload is suspended, but the ChangeWorkload that knew the failed check was deleted: repair it or roll it back"
		return d
	case c.Status.Phase == v1alpha1.WorkloadSuccess && !succeededWithoutPods(in):
		// Pods that come after the release ended are not part of it.
		d.Phase, d.Reason, d.Detail = v1alpha1.WorkloadSuccess, succeededReason(c), succeededMessage(c)
		d.Action = successAction(in)
		d.Order = decideClose(in, v1alpha1.OrderSuccess)
		return d
	case c.Status.Phase == v1alpha1.WorkloadFailed:
		d.Phase, d.Reason, d.Detail = c.Status.Phase, succeededReason(c), succeededMessage(c)
		d.Order = decideClose(in, v1alpha1.OrderCancel)
		if in.Workload.Complete {
			// Nobody judges this version, so nothing else could end a suspension
			// that it was admitted to repair.
			d.Action = successAction(in)
		}
		return d
	}

	pending := in.ServerConfigured && !c.Status.Order.Opened()
	ready := in.Workload.Complete && d.Pods.allPassed(in.Workload.Replicas)
	d.Order = decideOrder(in, ready)
	// Without an order only people can have judged, and they need none.
	if ready && (!pending || d.Pods.allJudged()) {
		return decideAllPassed(in, d, pending)
	}
	if pending {
		deadline := orderRequestedSince(in).Add(in.Settings.OrderTimeout)
		if !orderNotAccepted(in) {
			deadline = resend.Grace(deadline, in.Up, in.Now, retrieveGrace)
		}
		late := !in.Now.Before(deadline)
		if late && in.Settings.NoVerdictOfRelease() != v1alpha1.NoVerdictHold {
			return decideOrderNotAccepted(in, d)
		}
		d.OrderPending = true
		if !late {
			d.Deadline = deadline
		}
	}

	var next time.Time
	d.Batches, next = decideBatches(in)
	d.Deadline = earliest(earliest(d.Deadline, next), d.Order.Deadline)
	d.Phase, d.Reason, d.Detail = decideRunning(in, d)
	if in.Workload.Suspend != "" && heldByRelease(in) {
		// The fail was overruled by a person: the roll-out goes on.
		d.Action = ActionResume
	}
	return d
}

// replaced says whether the workload is at a newer release. An attempt that is
// not newer is a cache that is behind, or a workload whose annotations were taken
// away: neither ends this release.
func replaced(in Input) bool {
	return in.Workload.Attempt > in.ChangeWorkload.Spec.Attempt
}

// over says whether a release was a Success and has been replaced since. Only a fail
// changes what is known of it, and not that its pods go.
func supersededSuccess(in Input) bool {
	return in.ChangeWorkload.Status.Phase == v1alpha1.WorkloadSuccess && replaced(in)
}

// condemn ends the success of a version that was replaced since and failed
// later: it is none to go back to any more.
func (d *Decision) failLate(c *v1alpha1.ChangeWorkload) {
	outcome, detail := c.Status.OrderOutcome()
	switch {
	case len(d.Pods.Failed) > 0:
		d.Phase, d.Reason, d.Detail = v1alpha1.WorkloadFailed, v1alpha1.ReasonCheckFailed, d.Pods.failure()
	case outcome == v1alpha1.OutcomeFail:
		d.Phase, d.Reason, d.Detail = v1alpha1.WorkloadFailed, v1alpha1.ReasonOrderCheckFailed, "the order as a whole failed its check: "+detail
	}
}

// atTheEnd decides a release all of whose pods passed: the order as a whole
// has the last word.
func decideAllPassed(in Input, d Decision, pending bool) Decision {
	d.Phase, d.Reason, d.Detail = v1alpha1.WorkloadSuccess, v1alpha1.ReasonAllPassed, d.Pods.summary()
	o := d.Order
	switch {
	case pending || !in.ServerConfigured || o.Outcome == v1alpha1.OutcomePass:
	case o.Outcome == v1alpha1.OutcomePending:
		d.Phase, d.Reason, d.Deadline = v1alpha1.WorkloadRunning, v1alpha1.ReasonOrderChecking, o.Deadline
		d.Detail += "; the order as a whole is before the judge"
	case o.Skipped:
		d.Detail += "; " + o.Detail
	default:
		d.Detail += "; nobody judged the order as a whole: " + o.Detail
		switch in.Settings.NoVerdictOfOrder() {
		case v1alpha1.NoVerdictHold:
			d.Phase, d.Reason, d.orderUnjudgedReason = v1alpha1.WorkloadRunning, v1alpha1.ReasonUnjudgedHold, v1alpha1.ReasonUnjudgedHold
		case v1alpha1.NoVerdictFail:
			d.Phase, d.Reason, d.orderUnjudgedReason = v1alpha1.WorkloadSuspend, v1alpha1.ReasonUnjudgedFail, v1alpha1.ReasonUnjudgedFail
			d.Action = holdAction(in)
		case v1alpha1.NoVerdictPass:
			d.orderUnjudgedReason = v1alpha1.ReasonUnjudgedPass
		}
	}
	switch {
	case d.Phase == v1alpha1.WorkloadSuccess:
		d.Action = successAction(in)
		if end := decideClose(in, v1alpha1.OrderSuccess); end.WakeSubmit {
			d.Order.Step, d.Order.WakeSubmit = end.Step, true
		} else {
			d.Order.WakeSubmit = false
		}
	case d.Phase == v1alpha1.WorkloadRunning && in.Workload.Suspend != "" && heldByRelease(in):
		d.Action = ActionResume // the fail was overruled by a person
	}
	return d
}

// running tells the states of a release that is under way apart.
func decideRunning(in Input, d Decision) (v1alpha1.WorkloadPhase, string, string) {
	if d.OrderPending {
		return v1alpha1.WorkloadInit, v1alpha1.ReasonOrderPending, "the server has not taken the order yet"
	}
	if n := d.Pods.HeldUnjudged; n > 0 && n == len(d.Pods.Checking) && len(d.Batches) == 0 && len(d.Pods.Preparing) == 0 {
		return v1alpha1.WorkloadRunning, v1alpha1.ReasonUnjudgedHold, d.Pods.summary()
	}
	if len(d.Pods.Checking) > 0 || len(d.Batches) > 0 {
		return v1alpha1.WorkloadRunning, v1alpha1.ReasonJudging, d.Pods.summary()
	}
	missing := len(d.Pods.Preparing) > 0 || len(d.Pods.Passed) < int(in.Workload.Replicas)
	if missing && !in.Now.Before(lastProgressTime(in).Add(in.Settings.WaitThreshold)) {
		return v1alpha1.WorkloadTimeOutPre, v1alpha1.ReasonRollingOut,
			"no pod was finished within " + in.Settings.WaitThreshold.String()
	}
	return v1alpha1.WorkloadRunning, v1alpha1.ReasonRollingOut, d.Pods.summary()
}

// askedSince is when the server was first asked for the order. That is not when
// the release began if the server was configured later, or if the controller
// was down: a server that was never asked has refused nothing.
func orderRequestedSince(in Input) time.Time {
	cond := in.ChangeWorkload.Status.GetCondition(v1alpha1.WorkloadOrderAccepted)
	switch {
	case cond == nil, cond.Reason == v1alpha1.ReasonNoServer:
		return in.Now
	case orderNotAccepted(in):
		return time.Time{} // its time is over
	default:
		return cond.LastTransitionTime.Inner.Time
	}
}

// refused says whether it was decided already that the server did not take the order.
func orderNotAccepted(in Input) bool {
	cond := in.ChangeWorkload.Status.GetCondition(v1alpha1.WorkloadOrderAccepted)
	return cond != nil && cond.Reason == v1alpha1.ReasonOrderNotAccepted
}

// orderFailed decides a release whose order the server did not take in time.
// With no-verdict Hold it is never reached: that waits for the server.
func decideOrderNotAccepted(in Input, d Decision) Decision {
	detail := "the server did not take the order within " + in.Settings.OrderTimeout.String()
	if o := in.ChangeWorkload.Status.Order; o != nil && o.Error != nil {
		detail += ": " + o.Error.Message
	}
	d.Phase, d.Reason, d.Detail = v1alpha1.WorkloadFailed, v1alpha1.ReasonOrderNotAccepted, detail
	d.Order.WakeSubmit = false
	if in.Settings.NoVerdictOfRelease() == v1alpha1.NoVerdictFail {
		d.Phase, d.Action = v1alpha1.WorkloadSuspend, holdAction(in)
	}
	return d
}

// holdOrNot suspends the workload unless that is done or not wanted.
func holdAction(in Input) Action {
	switch {
	case !in.Settings.Blocking:
		return ActionNone
	case in.Workload.Suspend != "" && heldByRelease(in):
		return ActionNone
	default:
		return ActionHold
	}
}

// ours says whether the suspension was made for this attempt.
func heldByRelease(in Input) bool {
	return in.Workload.Hold != nil && in.Workload.Hold.Attempt == in.ChangeWorkload.Spec.Attempt
}

// unseen says whether the version succeeded without a pod, as one that was
// applied at 0 replicas does, and has pods now: they are the release.
func succeededWithoutPods(in Input) bool { return len(in.ChangePods) == 0 && len(in.Pods) > 0 }

// forgotten says whether the suspension is of this attempt and this
// ChangeWorkload is not the one that made it. Deleting a ChangeWorkload must
// not lift what it holds, so the new one does not begin anew.
func checkLost(in Input) bool {
	c := in.ChangeWorkload
	return in.Workload.Suspend != "" && heldByRelease(in) && (isNew(c) || succeededReason(c) == v1alpha1.ReasonCheckLost)
}

// isNew says whether nothing was decided about the release yet.
func isNew(c *v1alpha1.ChangeWorkload) bool {
	reason := succeededReason(c)
	return c.Status.Phase == v1alpha1.WorkloadInit && (reason == "" || reason == v1alpha1.ReasonReleasePending)
}

// afterSuccess ends what suspension this success ends: one of ours, or the one
// that this attempt was admitted to repair. A person's own freeze stays.
func successAction(in Input) Action {
	w := in.Workload
	repaired := w.Bypass != nil && w.Bypass.Attempt == in.ChangeWorkload.Spec.Attempt && w.Bypass.Suspend == w.Suspend
	switch {
	case w.Hold != nil, w.Suspend != "" && repaired:
		return ActionResume
	case !w.Processed:
		return ActionProcessed
	default:
		return ActionNone
	}
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
