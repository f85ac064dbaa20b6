package v1alpha1

// Opened says whether the server took the order.
func (o *Order) Opened() bool { return o != nil && o.OpenedTime != nil }

// SubmissionOf returns the call of the stage for the order as a whole, or nil.
func (o *Order) SubmissionOf(stage Stage) *Submission {
	if o == nil {
		return nil
	}
	return SubmissionOf(o.Submissions, stage)
}

// Node returns the server's id of the check of the order as a whole, or "".
func (o *Order) Node() string {
	if o == nil {
		return ""
	}
	return o.NodeID
}

// Closed says whether the order needs no further call that closes it: the
// server took one, refused it, or was tried often enough.
func (o *Order) Closed() bool {
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

// OrderOutcome says what the facts count as for the order as a whole, and why.
// A person's word counts above the server's, and a fail of a stage above a
// pass. PRE alone never makes a pass. OutcomePending means that the facts
// decide nothing: whether a verdict may still come, time decides.
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
