package submit

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// maxMessage is how many bytes a stored error message may have.
const maxMessage = 1024

// claim writes the intent to call and returns its number. Whoever gets it
// through the compare-and-swap is the one who calls.
func claim(list *[]v1alpha1.Submission, stage v1alpha1.Stage, now time.Time) int32 {
	next := v1alpha1.Submission{Stage: stage, IntentTime: metav1.NewMicroTime(now), Attempts: 1}
	old := v1alpha1.SubmissionOf(*list, stage)
	if old == nil {
		*list = append(*list, next)
		return next.Attempts
	}
	next.Attempts = old.Attempts + 1
	*old = next
	return next.Attempts
}

// claimBatch writes the intent to call for a batch.
func claimBatch(s *v1alpha1.ChangePodStatus, stage v1alpha1.Stage, now time.Time) {
	claim(&s.Submissions, stage, now)
	if stage == v1alpha1.StagePost {
		s.PostSubmitTime, s.PostSubmitTimeUnix = v1alpha1.FormatTime(now), now.Unix()
	}
}

// mine returns the submission if the intent of that number is still the last
// one and has no answer, else nil: somebody has given up on this call and made
// another one, and what this one brought counts no more.
func mine(list []v1alpha1.Submission, stage v1alpha1.Stage, attempt int32) *v1alpha1.Submission {
	if s := v1alpha1.SubmissionOf(list, stage); s != nil && s.Attempts == attempt && s.AnsweredTime == nil {
		return s
	}
	return nil
}

// started stores the node that a start made.
func started(s *v1alpha1.ChangePodStatus, attempt int32, node string, now time.Time) bool {
	submission := mine(s.Submissions, v1alpha1.StagePre, attempt)
	if submission == nil {
		return false
	}
	answered(submission, now)
	s.ChangePodID = node
	s.PreSubmitTime, s.PreSubmitTimeUnix = v1alpha1.FormatTime(now), now.Unix()
	return true
}

// finished stores that the server took the finish.
func finished(s *v1alpha1.ChangePodStatus, attempt int32, now time.Time) bool {
	submission := mine(s.Submissions, v1alpha1.StagePost, attempt)
	if submission == nil {
		return false
	}
	answered(submission, now)
	return true
}

// failed stores why the server did not take the call.
func failed(s *v1alpha1.ChangePodStatus, stage v1alpha1.Stage, attempt int32, why *v1alpha1.ServerError) bool {
	submission := mine(s.Submissions, stage, attempt)
	if submission == nil {
		return false
	}
	submission.Error = why
	return true
}

func answered(s *v1alpha1.Submission, now time.Time) {
	at := metav1.NewMicroTime(now)
	s.AnsweredTime, s.Error = &at, nil
}

// serverError turns the error of a call into a fact. Refused means that the
// server understood and did nothing. Its internal error (901) is no refusal:
// it may come after the server has stored its part, as a lost answer may.
func serverError(err error, now time.Time) *v1alpha1.ServerError {
	reason := v1alpha1.ReasonServerUnreachable
	if refused(err) {
		reason = v1alpha1.ReasonServerRejected
	}
	return &v1alpha1.ServerError{Reason: reason, Message: text.Truncate(err.Error(), maxMessage), Time: metav1.NewTime(now)}
}

func refused(err error) bool {
	var result *altershield.ResultError
	return errors.As(err, &result) && !altershield.MayHaveReached(err)
}
