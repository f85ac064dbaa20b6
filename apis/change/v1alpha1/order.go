package v1alpha1

import (
	"time"

	"knative.dev/pkg/apis"
)

// Opened reports whether the server accepted the order.
func (o *Order) Opened() bool { return o != nil && o.OpenedTime != nil }

// FirstResult returns the time of the first result of a call that opens the order, from which
// order-timeout counts, and false if there is none.
func (o *Order) FirstResult() (time.Time, bool) {
	if o == nil || o.RequestedTime == nil {
		return time.Time{}, false
	}
	return o.RequestedTime.Time, true
}

// SubmissionOf returns the call of the stage for the order as a whole, or nil.
func (o *Order) SubmissionOf(stage Stage) *Submission {
	if o == nil {
		return nil
	}
	return SubmissionOf(o.Submissions, stage)
}

// Node returns the id of the order check at the server, or "".
func (o *Order) Node() string {
	if o == nil {
		return ""
	}
	return o.NodeID
}

// ClosingDone reports whether no further call is made to close the order: the server
// accepted or rejected the call, or MaxClosingAttempts was reached. After a rejection or the
// last attempt, the order stays open at the server.
func (o *Order) ClosingDone() bool {
	if o == nil || o.Closing == nil {
		return false
	}
	c := o.Closing
	return c.AnsweredTime != nil || (c.Error != nil && (c.Error.Reason == ReasonServerRejected || c.Attempts >= MaxClosingAttempts))
}

// OrderVerdictOf returns the server's verdict of the stage of the order, or nil.
func (s *ChangeWorkloadStatus) OrderVerdictOf(stage Stage) *StageVerdict {
	return VerdictOf(s.OrderVerdicts, stage)
}

// OrderContradicted reports whether the order is unjudged because the server contradicts
// its pass of the last stage that was submitted.
func (s *ChangeWorkloadStatus) OrderContradicted() bool {
	stage := StagePre
	if s.Order.SubmissionOf(StagePost) != nil {
		stage = StagePost
	}
	outcome, _ := s.OrderOutcome()
	return outcome == OutcomePending && s.OrderVerdictOf(stage).IsContradicted()
}

// OrderAbandoned reports whether the server did not accept the order in time, and
// Breakwater no longer waits for it: the policy is Pass or Fail. With Hold the release waits.
func (s *ChangeWorkloadStatus) OrderAbandoned() bool {
	cond := s.GetCondition(ReleaseOrderAccepted)
	return cond.IsFalse() && cond.Reason == ReasonOrderNotAccepted
}

// FailedAndReplaced reports whether the release has failed and a newer one exists: that one ended it or
// replaced it while it was suspended, or it failed after it had succeeded and was replaced.
func (s *ChangeWorkloadStatus) FailedAndReplaced() bool {
	switch s.Phase {
	case ReleaseFailed:
		return !s.OrderAbandoned() && !s.TimedOut()
	case ReleaseSuspend:
		// The order of a release that may still pass is closed only as that of a Success.
		return s.OrderStep != nil && s.OrderStep.Name == OrderStepClose && s.OrderStep.State != OrderSuccess
	default:
		return false
	}
}

// TimedOut reports whether the release failed because its rollout made no progress. The
// release has not ended: pods that become Ready are judged.
func (s *ChangeWorkloadStatus) TimedOut() bool {
	return s.Phase == ReleaseFailed && s.GetCondition(apis.ConditionSucceeded).GetReason() == ReasonReleaseTimedOut
}

// OrderCheckFailed reports whether the server or a person failed the order as a whole. A
// fail is sticky: it stays after the verdict was withdrawn, until a person passes the
// order.
func (s *ChangeWorkloadStatus) OrderCheckFailed() bool {
	if outcome, _ := s.OrderOutcome(); outcome == OutcomeFail {
		return true
	}
	cond, r := s.GetCondition(ReleaseOrderJudged), s.OrderResult
	passed := r != nil && ParseVerdict(r.Verdict) == OutcomePass
	return cond.IsFalse() && cond.Reason == ReasonOrderCheckFailed && !passed
}

// OrderOutcome returns the outcome of the order as a whole, and its message. A person's
// verdict takes precedence over the server's, and a fail of one stage over a pass of
// the other. A pass of PRE alone is no pass. OutcomePending means that there is no
// verdict; the timeout is not considered.
func (s *ChangeWorkloadStatus) OrderOutcome() (outcome Outcome, message string) {
	if r := s.OrderResult; r != nil {
		if o := ParseVerdict(r.Verdict); o != OutcomeNoVerdict {
			return o, r.Message
		}
	}
	pre, post := s.OrderVerdictOf(StagePre), s.OrderVerdictOf(StagePost)
	for _, v := range []*StageVerdict{post, pre} {
		if v.Outcome() == OutcomeFail {
			return OutcomeFail, v.Message
		}
	}
	if o := post.Outcome(); o != OutcomePending {
		return o, post.Message
	}
	return OutcomePending, ""
}
