package submit

import (
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// maxMessage is the maximum length of a stored error message, in bytes.
const maxMessage = 1024

// setIntent sets the intent to call. The process whose compare-and-swap succeeds makes the
// call. If the last start was answered, node, which it created, becomes an earlier node.
func setIntent(list *[]v1alpha1.Submission, stage v1alpha1.Stage, node string, now time.Time) {
	next := v1alpha1.Submission{Stage: stage, IntentTime: metav1.NewMicroTime(now), Attempts: 1}
	old := v1alpha1.SubmissionOf(*list, stage)
	if old == nil {
		*list = append(*list, next)
		return
	}
	next.Attempts, next.FirstIntentTime = old.Attempts+1, &metav1.MicroTime{Time: old.FirstIntent()}
	next.Resumptions, next.EarlierNodes = old.Resumptions, old.EarlierNodes
	if old.AnsweredTime != nil {
		next.Resumptions++
		next.EarlierNodes = append(slices.Clone(old.EarlierNodes), node)
	}
	*old = next
}

// setBatchIntent sets the intent to call for a batch.
func setBatchIntent(s *v1alpha1.ChangePodStatus, stage v1alpha1.Stage, now time.Time) {
	setIntent(&s.Submissions, stage, s.ChangePodID, now)
	if stage == v1alpha1.StagePost {
		s.PostSubmitTime, s.PostSubmitTimeUnix = v1alpha1.FormatTime(now), now.Unix()
		selectNode(&s.ChangePodID, s.SubmissionOf(v1alpha1.StagePre), s.VerdictOf(v1alpha1.StagePre))
	}
}

// setOrderIntent sets the intent to call for the order.
func setOrderIntent(s *v1alpha1.ChangeWorkloadStatus, stage v1alpha1.Stage, now time.Time) {
	setIntent(&s.Order.Submissions, stage, s.Order.NodeID, now)
	if stage == v1alpha1.StagePost {
		selectNode(&s.Order.NodeID, s.Order.SubmissionOf(v1alpha1.StagePre), s.OrderVerdictOf(v1alpha1.StagePre))
	}
}

// selectNode makes the node with the PRE verdict the current one, because the server rejects
// the finish of any other node.
func selectNode(current *string, start *v1alpha1.Submission, pre *v1alpha1.StageVerdict) {
	if start == nil || pre == nil {
		return
	}
	if i := slices.Index(start.EarlierNodes, pre.NodeID); i >= 0 {
		start.EarlierNodes = slices.Clone(start.EarlierNodes)
		start.EarlierNodes[i], *current = *current, pre.NodeID
	}
}

// setResumed records that the server runs the check of an answered start again. It
// changes nothing if the start was repeated or resumed meanwhile.
func setResumed(list []v1alpha1.Submission, before *v1alpha1.Submission, now time.Time) {
	s := v1alpha1.SubmissionOf(list, v1alpha1.StagePre)
	if s == nil || s.AnsweredTime == nil || s.Attempts != before.Attempts || s.Resumptions != before.Resumptions {
		return
	}
	setAnswered(s, now)
	s.Resumptions++
}

// pendingSubmission returns the submission if its last intent has number attempt and no answer.
// It returns nil if a later call was made, because only the result of the last call counts.
func pendingSubmission(list []v1alpha1.Submission, stage v1alpha1.Stage, attempt int32) *v1alpha1.Submission {
	if s := v1alpha1.SubmissionOf(list, stage); s != nil && s.Attempts == attempt && s.AnsweredTime == nil {
		return s
	}
	return nil
}

// setStarted sets the node that a start created.
func setStarted(s *v1alpha1.ChangePodStatus, attempt int32, node string, now time.Time) bool {
	submission := pendingSubmission(s.Submissions, v1alpha1.StagePre, attempt)
	if submission == nil {
		return false
	}
	setAnswered(submission, now)
	addNode(&s.ChangePodID, s.Submissions, submission, node)
	s.PreSubmitTime, s.PreSubmitTimeUnix = v1alpha1.FormatTime(now), now.Unix()
	return true
}

// setOrderStarted sets the node that a start of the order created.
func setOrderStarted(o *v1alpha1.Order, start *v1alpha1.Submission, answer altershield.StartAnswer, now time.Time) {
	setAnswered(start, now)
	addNode(&o.NodeID, o.Submissions, start, answer.NodeID)
	o.Skipped = answer.SkipCheck
}

// addNode makes the node of an answered start the current one. If stage POST has begun
// meanwhile for the node of an earlier start, that node stays current. The new node then takes
// the last place of EarlierNodes, which setIntent gave to the current one.
func addNode(current *string, list []v1alpha1.Submission, start *v1alpha1.Submission, node string) {
	last := len(start.EarlierNodes) - 1
	if last < 0 || v1alpha1.SubmissionOf(list, v1alpha1.StagePost) == nil {
		*current = node
		return
	}
	start.EarlierNodes = slices.Clone(start.EarlierNodes)
	start.EarlierNodes[last] = node
}

// setFinishAccepted records that the server accepted the finish.
func setFinishAccepted(s *v1alpha1.ChangePodStatus, attempt int32, now time.Time) bool {
	submission := pendingSubmission(s.Submissions, v1alpha1.StagePost, attempt)
	if submission == nil {
		return false
	}
	setAnswered(submission, now)
	return true
}

// setError sets the error of a call.
func setError(s *v1alpha1.ChangePodStatus, stage v1alpha1.Stage, attempt int32, serverError *v1alpha1.ServerError) bool {
	submission := pendingSubmission(s.Submissions, stage, attempt)
	if submission == nil {
		return false
	}
	submission.Error = serverError
	return true
}

func setAnswered(s *v1alpha1.Submission, now time.Time) {
	s.AnsweredTime, s.Error = new(metav1.NewMicroTime(now)), nil
}

// serverError converts the error of a call into a fact. ReasonServerRejected means that the
// call had no effect. The server's internal error (901) is not a rejection: like a lost answer,
// it may occur after the server stored the call.
func serverError(err error, now time.Time) *v1alpha1.ServerError {
	reason := v1alpha1.ReasonServerUnreachable
	switch {
	case isRejected(err):
		reason = v1alpha1.ReasonServerRejected
	case errors.As(err, new(*functions.ConfigError)):
		reason = v1alpha1.ReasonServerMisconfigured
	}
	return &v1alpha1.ServerError{Reason: reason, Message: text.Truncate(err.Error(), maxMessage), Time: metav1.NewTime(now)}
}

func isRejected(err error) bool {
	return errors.As(err, new(*altershield.ResultError)) && !altershield.MayHaveTakenEffect(err)
}
