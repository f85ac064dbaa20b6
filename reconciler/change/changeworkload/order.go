package changeworkload

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// retrieveGrace is how long after its deadline a verdict of the order is waited
// for: function submit asks the server itself meanwhile.
const retrieveGrace = 15 * time.Second

// Order is what is known of the order as a whole, and what it waits for.
type Order struct {
	// Outcome is what it counts as. OutcomePending also where it was not asked
	// for yet; OutcomeNone when nobody will judge it, with Skipped when nobody
	// was to.
	Outcome v1alpha1.Outcome
	Skipped bool
	// Detail says why, to a person.
	Detail string
	// Step is what the order waits for; nil for nothing.
	Step *v1alpha1.OrderStep
	// Wake: function submit has something to do for Step.
	WakeSubmit bool
	// Deadline is when time alone changes this; zero when it never does.
	Deadline time.Time
}

// orderOf decides about the order of a release that is under way. ready says
// that every pod of it was judged, so that its check can be finished.
func decideOrder(in Input, ready bool) Order {
	c := in.ChangeWorkload
	facts := c.Status.Order
	switch outcome, detail := c.Status.OrderOutcome(); {
	case orderCheckFailed(in):
		return Order{Outcome: v1alpha1.OutcomeFail, Detail: orderFailDetail(in), Step: c.Status.OrderStep}
	case outcome != v1alpha1.OutcomePending:
		return Order{Outcome: outcome, Detail: detail, Step: c.Status.OrderStep}
	case !in.ServerConfigured:
		return Order{Outcome: v1alpha1.OutcomeNone, Detail: "no AlterShield server is configured", Step: c.Status.OrderStep}
	case !facts.Opened():
		return Order{Outcome: v1alpha1.OutcomePending, Step: dueStep(in, v1alpha1.OrderStepStart, ""), WakeSubmit: true}
	case facts.Skipped:
		return Order{Outcome: v1alpha1.OutcomeNone, Skipped: true, Step: c.Status.OrderStep,
			Detail: "the server does not judge the order as a whole (skipCheck)"}
	}
	started := decideOrderStage(in, v1alpha1.StagePre, facts.OpenedTime.Time, in.Settings.PreTimeout)
	if !ready || started.Outcome == v1alpha1.OutcomePending {
		if !ready {
			// Pods are gated by the release check alone: the rest of the
			// release waits for nothing.
			started.Outcome = v1alpha1.OutcomePending
		}
		return started
	}
	if facts.Node() == "" {
		return started // without a start there is nothing to finish
	}
	return decideOrderStage(in, v1alpha1.StagePost, dueStep(in, v1alpha1.OrderStepFinish, "").Since.Time, in.Settings.PostTimeout)
}

// orderStage decides a stage of the order whose verdict need not be there.
func decideOrderStage(in Input, stage v1alpha1.Stage, begun time.Time, timeout time.Duration) Order {
	c := in.ChangeWorkload
	name := v1alpha1.OrderStepStart
	if stage == v1alpha1.StagePost {
		name = v1alpha1.OrderStepFinish
	}
	o := Order{Outcome: v1alpha1.OutcomePending, Step: dueStep(in, name, "")}
	if v := c.Status.OrderVerdictOf(stage); v != nil {
		o.Outcome, o.Detail = v.Outcome(), v.Message
		return o
	}
	sub := c.Status.Order.SubmissionOf(stage)
	answered := sub != nil && sub.AnsweredTime != nil
	o.WakeSubmit = !answered
	if answered {
		begun = sub.AnsweredTime.Time
	}
	o.Deadline = begun.Add(timeout)
	if in.Now.Before(o.Deadline) {
		return o
	}
	if answered {
		if o.Deadline = o.Deadline.Add(retrieveGrace); in.Now.Before(o.Deadline) {
			o.WakeSubmit = true // to ask the server itself
			return o
		}
	}
	o.Outcome, o.Deadline = v1alpha1.OutcomeNone, time.Time{}
	o.Detail = "no " + string(stage) + " verdict of the order came within " + timeout.String()
	if !answered {
		o.Detail = "the server did not take the " + map[v1alpha1.Stage]string{
			v1alpha1.StagePre: "start", v1alpha1.StagePost: "finish"}[stage] + " of the order within " + timeout.String()
		if sub != nil && sub.Error != nil {
			o.Detail += ": " + sub.Error.Message
		}
	}
	return o
}

// orderFails says whether the order counts as failed. A fail is sticky: it
// stays when the word is gone, until a person says pass. One that nobody spoke
// follows the policy.
func orderCheckFailed(in Input) bool {
	outcome, _ := in.ChangeWorkload.Status.OrderOutcome()
	cond := in.ChangeWorkload.Status.GetCondition(v1alpha1.WorkloadOrderJudged)
	switch {
	case outcome == v1alpha1.OutcomeFail:
		return true
	case !cond.IsFalse():
		return false
	case cond.Reason == v1alpha1.ReasonOrderCheckFailed:
		r := in.ChangeWorkload.Status.OrderResult
		return r == nil || v1alpha1.ParseVerdict(r.Verdict) != v1alpha1.OutcomePass
	case cond.Reason == v1alpha1.ReasonUnjudgedFail:
		return outcome != v1alpha1.OutcomePass && in.Settings.NoVerdictOfOrder() == v1alpha1.NoVerdictFail
	}
	return false
}

// orderUnjudged says whether the order fails only because nobody judged it.
func orderUnjudged(in Input) bool {
	cond := in.ChangeWorkload.Status.GetCondition(v1alpha1.WorkloadOrderJudged)
	outcome, _ := in.ChangeWorkload.Status.OrderOutcome()
	return outcome != v1alpha1.OutcomeFail && cond.IsFalse() && cond.Reason == v1alpha1.ReasonUnjudgedFail
}

// orderFailure says why the order fails.
func orderFailDetail(in Input) string {
	if outcome, detail := in.ChangeWorkload.Status.OrderOutcome(); outcome == v1alpha1.OutcomeFail && detail != "" {
		return detail
	}
	if cond := in.ChangeWorkload.Status.GetCondition(v1alpha1.WorkloadOrderJudged); cond.IsFalse() && cond.Message != "" {
		return cond.Message
	}
	return "no reason was given"
}

// closing is what is left to do for the order of a release that has ended.
func decideClose(in Input, state v1alpha1.OrderState) Order {
	c := in.ChangeWorkload
	o := Order{Step: c.Status.OrderStep}
	o.Outcome, o.Detail = c.Status.OrderOutcome()
	if o.Outcome == v1alpha1.OutcomePending {
		o.Outcome = v1alpha1.OutcomeNone // nobody is asked any more
		o.Skipped = c.Status.Order != nil && c.Status.Order.Skipped
	}
	if in.ServerConfigured && c.Status.Order.Opened() && !c.Status.Order.Closed() {
		o.Step, o.WakeSubmit = dueStep(in, v1alpha1.OrderStepClose, state), true
	}
	return o
}

// endOf is how the order of a release ends that a newer one has replaced.
func closeState(in Input) v1alpha1.OrderState {
	switch {
	case in.ChangeWorkload.Status.Phase == v1alpha1.WorkloadSuccess:
		return v1alpha1.OrderSuccess
	case in.Workload.IsRollback:
		return v1alpha1.OrderRollback
	default:
		return v1alpha1.OrderCancel
	}
}

// step returns a step that is due since now, or since it became due.
func dueStep(in Input, name v1alpha1.OrderStepName, state v1alpha1.OrderState) *v1alpha1.OrderStep {
	if s := in.ChangeWorkload.Status.OrderStep; s != nil && s.Name == name {
		same := name != v1alpha1.OrderStepClose || s.State == state
		// Only a Success may turn out to be none, if the server does not know of it yet.
		if same || s.State != v1alpha1.OrderSuccess || in.ChangeWorkload.Status.Order.Closing != nil {
			return s
		}
	}
	return &v1alpha1.OrderStep{Name: name, Since: metav1.NewTime(in.Now), State: state}
}

// markOrderJudged says whether somebody judged the order as a whole.
func markOrderJudged(in Input, d Decision, m apis.ConditionManager) {
	old := in.ChangeWorkload.Status.GetCondition(v1alpha1.WorkloadOrderJudged)
	o := d.Order
	set := func(status corev1.ConditionStatus, reason, detail string) {
		setInfo(m, v1alpha1.WorkloadOrderJudged, status, reason, detail)
	}
	switch {
	case d.Reason == v1alpha1.ReasonBaseline:
	case o.Outcome == v1alpha1.OutcomeFail && orderUnjudged(in):
		set("False", v1alpha1.ReasonUnjudgedFail, o.Detail)
	case o.Outcome == v1alpha1.OutcomeFail:
		set("False", v1alpha1.ReasonOrderCheckFailed, o.Detail)
	case o.Outcome == v1alpha1.OutcomePass:
		set("True", v1alpha1.ReasonVerdictReceived, "")
	case o.Skipped:
		set("False", v1alpha1.ReasonOrderSkipped, o.Detail)
	case d.orderUnjudgedReason != "":
		set("False", d.orderUnjudgedReason, o.Detail)
	case ended(in.ChangeWorkload.Status.Phase) && old.IsFalse() && o.Outcome == v1alpha1.OutcomeNone:
		// As it was when the release ended.
	case !in.ServerConfigured:
		set("False", v1alpha1.ReasonNoServer, "no AlterShield server is configured")
	case ended(d.Phase) && o.Outcome == v1alpha1.OutcomeNone:
		set("False", v1alpha1.ReasonNoVerdict, "nobody judged the order as a whole")
	default:
		set("Unknown", v1alpha1.ReasonOrderChecking, "")
	}
}

func ended(p v1alpha1.WorkloadPhase) bool {
	return p == v1alpha1.WorkloadSuccess || p == v1alpha1.WorkloadFailed
}
