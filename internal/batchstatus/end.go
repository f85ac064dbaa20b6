package batchstatus

import (
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

// EndByServer returns the end of a batch that follows from the verdicts of the server alone,
// and when the batch ended. The outcome of an end by a verdict that is neither pass nor fail
// depends on the settings.
func EndByServer(c *v1alpha1.ChangePod) (end State, at time.Time, ended bool) {
	pre, post := c.Status.VerdictOf(v1alpha1.StagePre), c.Status.VerdictOf(v1alpha1.StagePost)
	switch {
	case post.EndsStage():
		return State{Phase: v1alpha1.BatchExecuteDone, Message: v1alpha1.BatchPostFinish, Detail: post.Message}, post.Time.Time, true
	case pre.Outcome() == v1alpha1.OutcomeFail:
		return State{Phase: v1alpha1.BatchExecuteDone, Message: v1alpha1.BatchPreFailed, Reason: v1alpha1.ReasonCheckFailed, Detail: pre.Message}, pre.Time.Time, true
	default:
		return State{}, time.Time{}, false
	}
}

// SetEnd derives the end of a batch from the verdicts of the server, if they alone decide it:
// each pod passed or failed, it has no other judge, and no person has judged the batch. Other
// ends depend on settings and deadlines, which the ChangePod reconciler has.
func SetEnd(c *v1alpha1.ChangePod, now time.Time) {
	end, _, ended := EndByServer(c)
	if !ended || len(c.Spec.Judges) > 0 || len(c.Status.Judges) > 0 || c.JudgedByPerson() || !judged(c) {
		return
	}
	derived, _ := Derive(c, end, settings.Rule{}, now) // all pods are judged, so the rule has no effect
	c.Status = derived.Status
}

// judged reports whether each pod of the batch passed or failed. The status of such a batch
// does not depend on the settings.
func judged(c *v1alpha1.ChangePod) bool {
	return !slices.ContainsFunc(c.Spec.PodInfos, func(info v1alpha1.PodSummary) bool {
		outcome, _ := c.OutcomeOf(info.Pod)
		return outcome != v1alpha1.OutcomePass && outcome != v1alpha1.OutcomeFail
	})
}
