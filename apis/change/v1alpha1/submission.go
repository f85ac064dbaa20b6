package v1alpha1

import (
	"slices"
	"time"
)

// SubmissionOf returns the stage's submission, or nil.
func SubmissionOf(submissions []Submission, stage Stage) *Submission {
	for i := range submissions {
		if submissions[i].Stage == stage {
			return &submissions[i]
		}
	}
	return nil
}

// FirstIntent returns the time of the first intent, from which the timeout of the stage
// counts; zero for nil.
func (s *Submission) FirstIntent() time.Time {
	switch {
	case s == nil:
		return time.Time{}
	case s.FirstIntentTime != nil:
		return s.FirstIntentTime.Time
	default:
		return s.IntentTime.Time
	}
}

// Accepted reports whether the server accepted the call or, for a start, an earlier one.
func (s *Submission) Accepted() bool {
	return s != nil && (s.AnsweredTime != nil || len(s.EarlierNodes) > 0)
}

// earlierNodes returns the earlier order nodes of a start; nil for nil.
func (s *Submission) earlierNodes() []string {
	if s == nil {
		return nil
	}
	return s.EarlierNodes
}

// Nodes returns the order nodes of the batch, the current one first. A verdict of any of
// them counts.
func (s *ChangePodStatus) Nodes() []string {
	return nodesOf(s.ChangePodID, s.SubmissionOf(StagePre))
}

// HasNode reports whether the batch has an order node.
func (s *ChangePodStatus) HasNode(node string) bool { return slices.Contains(s.Nodes(), node) }

// Nodes returns the order nodes of the order check, as those of a batch.
func (o *Order) Nodes() []string { return nodesOf(o.Node(), o.SubmissionOf(StagePre)) }

// HasNode reports whether the order check has an order node.
func (o *Order) HasNode(node string) bool { return slices.Contains(o.Nodes(), node) }

func nodesOf(current string, start *Submission) []string {
	if current == "" {
		return nil
	}
	return append([]string{current}, start.earlierNodes()...)
}
