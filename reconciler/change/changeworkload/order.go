package changeworkload

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/deadline"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/reconciler/change/callqueue"
)

// Order is the state of the order check and its next step.
type Order struct {
	// Outcome is OutcomePending also before the check starts. OutcomeNoVerdict means
	// unjudged, or with Skipped that the server does not check this order.
	Outcome v1alpha1.Outcome
	Skipped bool
	// Detail is the message of the condition.
	Detail string
	// Step is the next step of the order, or nil.
	Step *v1alpha1.OrderStep
	// WakeSubmit: function submit has to act on Step.
	WakeSubmit bool
	// WakeFor is the purpose of these wake-ups.
	WakeFor resend.Purpose
	// Deadline is when this changes without an event; zero means never.
	Deadline time.Time
}

// decideOrder decides the order check of a release that has not ended. ready reports
// that every pod passed: only then is the finish called.
func decideOrder(in Input, ready bool) Order {
	c := in.ChangeWorkload
	facts := c.Status.Order
	switch outcome, detail := c.Status.OrderOutcome(); {
	case orderFailed(in):
		return Order{Outcome: v1alpha1.OutcomeFail, Detail: orderFailDetail(in), Step: c.Status.OrderStep}
	case outcome != v1alpha1.OutcomePending:
		return Order{Outcome: outcome, Detail: detail, Step: c.Status.OrderStep}
	case !in.ServerConfigured:
		return Order{Outcome: v1alpha1.OutcomeNoVerdict, Detail: "no AlterShield server is configured", Step: c.Status.OrderStep}
	case !facts.Opened():
		return Order{Outcome: v1alpha1.OutcomePending, Step: dueStep(in, v1alpha1.OrderStepStart, ""), WakeSubmit: true}
	case facts.Skipped:
		return Order{Outcome: v1alpha1.OutcomeNoVerdict, Skipped: true, Step: c.Status.OrderStep,
			Detail: "the server skips the order check (skipCheck)"}
	}
	started := decideOrderStage(in, v1alpha1.StagePre, in.Settings.PreTimeout)
	if !ready || started.Outcome == v1alpha1.OutcomePending {
		if !ready {
			// Pods do not wait for the PRE verdict of the order, so it decides
			// nothing until all of them passed.
			started.Outcome = v1alpha1.OutcomePending
		}
		return started
	}
	switch {
	case facts.Node() == "":
		return started // a check that did not start gets no finish
	case facts.SubmissionOf(v1alpha1.StagePost) == nil && c.Status.OrderContradicted() && in.Settings.NoVerdictContradicted != v1alpha1.NoVerdictPass:
		return started // a pass of stage POST would hide that PRE is contradicted
	}
	return decideOrderStage(in, v1alpha1.StagePost, in.Settings.PostTimeout)
}

// decideOrderStage decides one stage of the order check. Its timeout counts from the
// first intent: the time in which the call waits for its turn does not count. A timeout that
// passed while no controller ran is extended, so that function submit can ask the server first.
func decideOrderStage(in Input, stage v1alpha1.Stage, timeout time.Duration) Order {
	c := in.ChangeWorkload
	name := v1alpha1.OrderStepStart
	if stage == v1alpha1.StagePost {
		name = v1alpha1.OrderStepFinish
	}
	o := Order{Outcome: v1alpha1.OutcomePending, Step: dueStep(in, name, "")}
	v := c.Status.OrderVerdictOf(stage)
	if v.EndsStage() {
		o.Outcome, o.Detail = v.Outcome(), v.Message
		return o
	}
	sub := c.Status.Order.SubmissionOf(stage)
	if sub == nil {
		return decideUnrequestedStage(in, stage, o)
	}
	answered := sub.Accepted() || v.Unconfirmed()
	o.WakeSubmit = true
	o.Deadline = sub.FirstIntent().Add(timeout)
	if in.Now.Before(o.Deadline) {
		return whileAwaitingVerdict(in, sub, v, o)
	}
	if end := resend.EndOfStage(o.Deadline, answered, in.DecidingSince, in.Now); in.Now.Before(end) {
		o.Deadline = end
		if answered {
			o.WakeFor = resend.ForLastVerdict
		}
		return asHeldBefore(in, o)
	}
	o.Outcome, o.Deadline = v1alpha1.OutcomeNoVerdict, time.Time{}
	o.WakeSubmit = !answered
	o.Detail = "no " + string(stage) + " verdict of the order within " + timeout.String()
	switch {
	case v.Unconfirmed():
		o.Detail = v.UnconfirmedDetail(timeout)
	case !answered:
		o.Detail = "the server did not accept the " + callName(stage) + " of the order within " + timeout.String()
		if sub.Error != nil {
			o.Detail += ": " + sub.Error.Message
		}
	}
	return o
}

// decideUnrequestedStage decides a stage whose call has no intent.
func decideUnrequestedStage(in Input, stage v1alpha1.Stage, o Order) Order {
	o.WakeSubmit = true
	woken := wokenSince(in, o.Step.Name)
	if woken.IsZero() { // its call waits in our queue
		return asHeldBefore(in, o)
	}
	if stage == v1alpha1.StagePre {
		woken = deadline.Latest(woken, in.ChangeWorkload.Status.Order.OpenedTime.Time) // opening is part of the step
	}
	o.Deadline = woken.Add(in.Settings.SubmitTimeout)
	if in.Now.Before(o.Deadline) {
		return o
	}
	o.Outcome, o.Deadline = v1alpha1.OutcomeNoVerdict, time.Time{}
	o.Detail = "the " + callName(stage) + " of the order was not called " + callqueue.WithinSubmitTimeout(in.Settings.SubmitTimeout, callqueue.NoCallCauses)
	return o
}

// asHeldBefore returns an order check that waits for a call or a verdict again. A release that is
// held as unjudged stays held meanwhile.
func asHeldBefore(in Input, o Order) Order {
	cond := in.ChangeWorkload.Status.GetCondition(v1alpha1.ReleaseOrderJudged)
	if cond.IsFalse() && cond.Reason == v1alpha1.ReasonHeldUnjudged && in.Settings.RuleOfOrder(in.ChangeWorkload).Policy == v1alpha1.NoVerdictHold {
		o.Outcome, o.Detail = v1alpha1.OutcomeNoVerdict, cond.Message
	}
	return o
}

func callName(stage v1alpha1.Stage) string {
	if stage == v1alpha1.StagePre {
		return "start"
	}
	return "finish"
}

// wokenSince is the time from which submit-timeout counts for the step
// (callqueue.WokenSince); zero for another step, and while the call waits in the queue.
func wokenSince(in Input, name v1alpha1.OrderStepName) time.Time {
	if s := in.ChangeWorkload.Status.OrderStep; s == nil || s.Name != name {
		return time.Time{}
	}
	return in.StepWokenSince
}

// whileAwaitingVerdict returns the order check before the timeout of a stage. If the server
// accepted it, function submit asks for the verdict, from VerdictDelay on.
func whileAwaitingVerdict(in Input, sub *v1alpha1.Submission, v *v1alpha1.StageVerdict, o Order) Order {
	answered := sub.IntentTime
	switch {
	case sub.AnsweredTime != nil:
		answered = *sub.AnsweredTime
	case !v.Unconfirmed():
		return o // the call is made
	}
	o.WakeFor = resend.ForVerdict
	if ask := answered.Add(resend.VerdictDelay); in.Now.Before(ask) {
		o.WakeSubmit, o.Deadline = false, deadline.Earliest(o.Deadline, ask)
	}
	return o
}

// orderFailed reports whether the order counts as failed: its check failed, or it is
// unjudged and its policy is Fail.
func orderFailed(in Input) bool {
	outcome, _ := in.ChangeWorkload.Status.OrderOutcome()
	cond := in.ChangeWorkload.Status.GetCondition(v1alpha1.ReleaseOrderJudged)
	return in.ChangeWorkload.Status.OrderCheckFailed() ||
		cond.IsFalse() && cond.Reason == v1alpha1.ReasonFailedUnjudged && outcome != v1alpha1.OutcomePass &&
			in.Settings.RuleOfOrder(in.ChangeWorkload).Policy == v1alpha1.NoVerdictFail
}

// failsOnlyUnjudged reports whether the recorded order fails only because it is unjudged.
func failsOnlyUnjudged(in Input) bool {
	cond := in.ChangeWorkload.Status.GetCondition(v1alpha1.ReleaseOrderJudged)
	outcome, _ := in.ChangeWorkload.Status.OrderOutcome()
	return outcome != v1alpha1.OutcomeFail && cond.IsFalse() && cond.Reason == v1alpha1.ReasonFailedUnjudged
}

// orderUnjudgedDetail is the message of an unjudged order, with the setting that decides.
func orderUnjudgedDetail(in Input, o Order) string {
	return fmt.Sprintf("the order is unjudged (%s): %s", in.Settings.RuleOfOrder(in.ChangeWorkload), o.Detail)
}

// orderFailDetail is the message of the fail of the order.
func orderFailDetail(in Input) string {
	if outcome, detail := in.ChangeWorkload.Status.OrderOutcome(); outcome == v1alpha1.OutcomeFail && detail != "" {
		return detail
	}
	if cond := in.ChangeWorkload.Status.GetCondition(v1alpha1.ReleaseOrderJudged); cond.IsFalse() && cond.Message != "" {
		return cond.Message
	}
	return "without a message"
}

// decideClose decides the order of a release that has ended.
func decideClose(in Input, state v1alpha1.OrderState) Order {
	c := in.ChangeWorkload
	o := Order{Step: c.Status.OrderStep}
	o.Outcome, o.Detail = c.Status.OrderOutcome()
	if o.Outcome == v1alpha1.OutcomePending {
		o.Outcome = v1alpha1.OutcomeNoVerdict // the check is not continued
		o.Skipped = c.Status.Order != nil && c.Status.Order.Skipped
	}
	if in.ServerConfigured && c.Status.Order.Opened() && !c.Status.Order.ClosingDone() {
		o.Step, o.WakeSubmit = dueStep(in, v1alpha1.OrderStepClose, state), true
	}
	return o
}

// decideCloseOfSuccess decides the order of a release that succeeds or has succeeded. Without pods, as at 0 replicas, it
// stays open for the next pods, which are judged, until a newer release or a deletion ends this one.
func decideCloseOfSuccess(in Input, pods PodOutcomes) Order {
	o, stored := decideClose(in, v1alpha1.OrderSuccess), in.ChangeWorkload.Status.OrderStep
	if !succeedsWithPods(in, pods) && (stored == nil || stored.Name != v1alpha1.OrderStepClose) {
		o.Step, o.WakeSubmit = stored, false
	}
	return o
}

// dueStep returns a step with the time since which it is due: that of the stored step
// if this is the same step, otherwise now.
func dueStep(in Input, name v1alpha1.OrderStepName, state v1alpha1.OrderState) *v1alpha1.OrderStep {
	if s := in.ChangeWorkload.Status.OrderStep; s != nil && s.Name == name {
		same := name != v1alpha1.OrderStepClose || s.State == state
		// A late fail changes the state, but only from SUCCESS and before the server
		// was called.
		if same || s.State != v1alpha1.OrderSuccess || in.ChangeWorkload.Status.Order.Closing != nil {
			return s
		}
	}
	return &v1alpha1.OrderStep{Name: name, Since: metav1.NewTime(in.Now), State: state}
}

// markOrderJudged sets condition OrderJudged.
func markOrderJudged(in Input, d Decision, m apis.ConditionManager) {
	old := in.ChangeWorkload.Status.GetCondition(v1alpha1.ReleaseOrderJudged)
	o := d.Order
	set := func(status corev1.ConditionStatus, reason, detail string) {
		setInfo(m, v1alpha1.ReleaseOrderJudged, status, reason, detail)
	}
	switch {
	case d.Reason == v1alpha1.ReasonBaseline:
	case o.Outcome == v1alpha1.OutcomeFail && failsOnlyUnjudged(in):
		set("False", v1alpha1.ReasonFailedUnjudged, o.Detail)
	case o.Outcome == v1alpha1.OutcomeFail:
		set("False", v1alpha1.ReasonOrderCheckFailed, o.Detail)
	case o.Outcome == v1alpha1.OutcomePass:
		set("True", v1alpha1.ReasonVerdictReceived, "")
	case o.Skipped:
		set("False", v1alpha1.ReasonOrderCheckSkipped, o.Detail)
	case d.unjudgedReason != "":
		set("False", d.unjudgedReason, o.Detail)
	case ended(in.ChangeWorkload) && old.IsFalse() && o.Outcome == v1alpha1.OutcomeNoVerdict:
		// The condition stays as it was when the release ended.
	case !in.ServerConfigured:
		set("False", v1alpha1.ReasonNoServerConfigured, "no AlterShield server is configured")
	case d.ended() && o.Outcome == v1alpha1.OutcomeNoVerdict:
		set("False", v1alpha1.ReasonNoVerdict, "the release ended without a verdict of the order")
	default:
		set("Unknown", v1alpha1.ReasonJudgingOrder, "")
	}
}

// ended reports whether a release ended. One that timed out is judged again when its
// rollout makes progress.
func ended(c *v1alpha1.ChangeWorkload) bool {
	return c.Status.Phase == v1alpha1.ReleaseSuccess || c.Status.Phase == v1alpha1.ReleaseFailed && !c.Status.TimedOut()
}

func (d Decision) ended() bool {
	return d.Phase == v1alpha1.ReleaseSuccess || d.Phase == v1alpha1.ReleaseFailed && d.Reason != v1alpha1.ReasonReleaseTimedOut
}
