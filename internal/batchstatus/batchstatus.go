// Package batchstatus derives the status of a batch, a ChangePod, from its state. The
// ChangePod reconciler derives all states. A verdict of the server that ends the batch is
// stored together with the end, so that the end costs no write of its own.
package batchstatus

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

// State is the state of a batch.
type State struct {
	// Phase and Message are for status.status and status.message.
	Phase   v1alpha1.BatchPhase
	Message v1alpha1.BatchPhase
	// Reason is the reason of condition Judged, and Detail its message.
	Reason string
	Detail string
	// HeldUnjudged: the call or a judge timed out, but the batch is held.
	HeldUnjudged bool
}

// Derive returns a copy of the ChangePod with the status that is derived from a state, and
// whether anything but updateTime differs. rule is that of the batch if it is unjudged.
func Derive(c *v1alpha1.ChangePod, s State, rule settings.Rule, now time.Time) (*v1alpha1.ChangePod, bool) {
	next := c.DeepCopy()
	st := &next.Status
	st.Phase, st.Message, st.ObservedGeneration = s.Phase, string(s.Message), c.Generation
	markConditions(next, s, rule)
	if equality.Semantic.DeepEqual(c.Status, next.Status) {
		return next, false
	}
	st.UpdateTime, st.UpdateTimeUnix = v1alpha1.FormatTime(now), now.Unix()
	return next, true
}

// markConditions derives Succeeded and Judged from the outcomes of the pods.
func markConditions(c *v1alpha1.ChangePod, s State, rule settings.Rule) {
	m := c.GetConditionSet().Manage(c.GetStatus())
	outcomes := map[v1alpha1.Outcome]int{}
	failed := ""
	for i := range c.Spec.PodInfos {
		o, message := c.OutcomeOf(c.Spec.PodInfos[i].Pod)
		outcomes[o]++
		if o == v1alpha1.OutcomeFail && failed == "" {
			failed = c.Spec.PodInfos[i].Pod + ": " + message
		}
	}
	unjudged := outcomes[v1alpha1.OutcomeNoVerdict] > 0
	switch {
	case s.HeldUnjudged:
		m.SetCondition(apis.Condition{Type: v1alpha1.BatchJudged, Status: corev1.ConditionFalse,
			Severity: apis.ConditionSeverityInfo, Reason: unjudgedReason(s), Message: s.Detail})
	case s.Phase != v1alpha1.BatchExecuteDone && s.Reason != "":
		m.MarkUnknown(v1alpha1.BatchJudged, s.Reason, "%s", s.Detail)
	case s.Phase != v1alpha1.BatchExecuteDone:
		m.MarkUnknown(v1alpha1.BatchJudged, v1alpha1.ReasonJudging, "the server has no verdict yet")
	case unjudged:
		m.SetCondition(apis.Condition{Type: v1alpha1.BatchJudged, Status: corev1.ConditionFalse,
			Severity: apis.ConditionSeverityInfo, Reason: unjudgedReason(s), Message: s.Detail})
	default:
		// MarkTrue would also mark Succeeded and change its transition time each time.
		m.SetCondition(apis.Condition{Type: v1alpha1.BatchJudged, Status: corev1.ConditionTrue,
			Severity: apis.ConditionSeverityInfo, Reason: v1alpha1.ReasonVerdictReceived})
	}
	switch {
	case outcomes[v1alpha1.OutcomeFail] > 0:
		m.MarkFalse(apis.ConditionSucceeded, v1alpha1.ReasonCheckFailed, "%s", failed)
	case unjudged && rule.Policy == v1alpha1.NoVerdictFail:
		m.MarkFalse(apis.ConditionSucceeded, v1alpha1.ReasonFailedUnjudged, "the batch is unjudged and %s%s", rule, judgeDetail(c, s))
	case s.HeldUnjudged && len(c.Spec.Judges) > 0:
		m.MarkUnknown(apis.ConditionSucceeded, v1alpha1.ReasonHeldUnjudged, "the batch is unjudged%s%s", heldBy(rule), judgeDetail(c, s))
	case s.HeldUnjudged:
		m.MarkUnknown(apis.ConditionSucceeded, v1alpha1.ReasonHeldUnjudged, "the batch is unjudged%s; calls to the server are retried", heldBy(rule))
	case outcomes[v1alpha1.OutcomePending] > 0 && len(c.Spec.Judges) > 0:
		m.MarkUnknown(apis.ConditionSucceeded, v1alpha1.ReasonJudging, "%s", cmp.Or(s.Detail, "the server has no verdict yet"))
	case outcomes[v1alpha1.OutcomePending] > 0:
		m.MarkUnknown(apis.ConditionSucceeded, v1alpha1.ReasonJudging, "the server has no verdict yet")
	case unjudged && rule.Policy == v1alpha1.NoVerdictHold:
		m.MarkUnknown(apis.ConditionSucceeded, v1alpha1.ReasonHeldUnjudged, "the batch is unjudged%s; it waits for a late verdict or a person%s", heldBy(rule), judgeDetail(c, s))
	case unjudged:
		m.MarkTrueWithReason(apis.ConditionSucceeded, v1alpha1.ReasonPassedUnjudged, "the batch is unjudged and %s%s", rule, judgeDetail(c, s))
	default:
		m.MarkTrueWithReason(apis.ConditionSucceeded, v1alpha1.ReasonAllPodsPassed, "every pod of the batch passed")
	}
}

// heldBy is the part of a message that names the setting that holds a batch. It is empty if the
// rule of the batch, the strictest of its rules, has another policy than Hold: then the rule of a
// judge that timed out holds the batch.
func heldBy(rule settings.Rule) string {
	if rule.Policy != v1alpha1.NoVerdictHold {
		return ""
	}
	return " and " + rule.String()
}

// judgeDetail is the end of a message about a batch that has other judges than the server.
func judgeDetail(c *v1alpha1.ChangePod, s State) string {
	if len(c.Spec.Judges) == 0 || s.Detail == "" {
		return ""
	}
	return ": " + s.Detail
}

// unjudgedReason is the reason of an unjudged batch: that of the decision, or
// NoVerdict after a verdict that is neither pass nor fail.
func unjudgedReason(s State) string {
	withoutVerdict := []string{v1alpha1.ReasonNoServerConfigured, v1alpha1.ReasonVerdictTimedOut, v1alpha1.ReasonVerdictContradicted,
		v1alpha1.ReasonOrderNotAccepted, v1alpha1.ReasonServerRejected, v1alpha1.ReasonServerUnreachable, v1alpha1.ReasonNotSubmitted}
	if slices.Contains(withoutVerdict, s.Reason) {
		return s.Reason
	}
	return v1alpha1.ReasonNoVerdict
}
