package submit

import (
	"context"
	"errors"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// skipMessage tells a person why nobody judged.
const skipMessage = "the server skips this check"

// start calls for an intent that is written.
func (f *function) start(ctx context.Context, server Server, in Input) error {
	call, cancel := f.withinIntent(ctx, in)
	defer cancel()
	answer, callErr := server.StartBatch(call, startOf(in.Workload, in.Pod, in.Now))
	err := f.settle(ctx, in, callErr, func(s *v1alpha1.ChangePodStatus, attempt int32) bool {
		return started(s, attempt, answer.NodeID, f.clock.Now())
	})
	switch {
	case err != nil:
		return err
	case callErr != nil || !answer.SkipCheck:
		return callErr
	}
	// No callback will come: that nobody judges is known now, not at the deadline.
	said := f.said(in, answer.NodeID, "pass")
	said.Unjudged, said.Message = true, skipMessage
	return f.recorder.Record(ctx, said, nil)
}

// finish calls for an intent that is written.
func (f *function) finish(ctx context.Context, server Server, in Input) error {
	call, cancel := f.withinIntent(ctx, in)
	defer cancel()
	_, callErr := server.Finish(call, finishOf(in.Workload, in.Pod, in.Now))
	if in.Pod.Status.SubmissionOf(in.Stage).Attempts > 1 && checkRuns(callErr) {
		callErr = nil // an earlier finish, whose answer was lost, had arrived
	}
	if callErr == nil && in.Pod.Status.SubmissionOf(in.Stage).Attempts == 1 {
		// Not written: the verdict tells as much, and is mostly there at once.
		// If it is not, the next wake-up writes it; if this process is gone by
		// then, the intent counts as one whose answer was lost.
		f.answers.Add(answerKey(in.Pod), f.clock.Now())
		return nil
	}
	err := f.settle(ctx, in, callErr, func(s *v1alpha1.ChangePodStatus, attempt int32) bool {
		return finished(s, attempt, f.clock.Now())
	})
	if err != nil {
		return err
	}
	return callErr
}

// maxAnswers is how many answers that are not written a process remembers.
const maxAnswers = 10000

// answerKey names the first finish of a batch.
func answerKey(p *v1alpha1.ChangePod) string { return string(p.UID) }

// remembered returns when this process got the answer to the last finish of
// the batch, if that is not written.
func (f *function) remembered(p *v1alpha1.ChangePod) (time.Time, bool) {
	s := p.Status.SubmissionOf(v1alpha1.StagePost)
	if s == nil || s.Attempts != 1 {
		return time.Time{}, false
	}
	at, ok := f.answers.Get(answerKey(p))
	if !ok {
		return time.Time{}, false
	}
	return at.(time.Time), true
}

// checkRuns says whether a finish was refused because the check that a finish
// begins is under way: the message then names the state, POST_AOP_SUBMIT.
func checkRuns(err error) bool {
	var result *altershield.ResultError
	return errors.As(err, &result) && altershield.IsState(err) && strings.Contains(result.Msg, "POST_AOP")
}

// retrieve asks for the verdict of the stage and records it if it is a pass.
// Everything else tells nothing, a refusal of the question included.
func (f *function) retrieve(ctx context.Context, server Server, in Input) (passed bool, err error) {
	node := in.Pod.Status.ChangePodID
	answer, err := server.Retrieve(ctx, altershield.Retrieve{OrderID: in.Workload.Spec.OrderID, NodeID: node, Stage: in.Stage})
	switch {
	case refused(err):
		return false, nil
	case err != nil:
		return false, err
	case !answer.Passed():
		return false, nil
	}
	if in.Pod.Status.SubmissionOf(in.Stage).AnsweredTime == nil {
		err = f.settle(ctx, in, nil, func(s *v1alpha1.ChangePodStatus, attempt int32) bool {
			return finished(s, attempt, f.clock.Now())
		})
	}
	if err == nil {
		err = f.recorder.Record(ctx, f.said(in, node, answer.Verdict), nil)
	}
	return true, err
}

// settle writes what came of the call whose intent is in the input. If another
// intent was written meanwhile, nothing is: that one's call counts, and the
// verdict of our node is dropped as that of an old one.
func (f *function) settle(ctx context.Context, in Input, callErr error, success func(*v1alpha1.ChangePodStatus, int32) bool) error {
	attempt := in.Pod.Status.SubmissionOf(in.Stage).Attempts
	pods := f.client.AppV1alpha1().ChangePods(in.Pod.Namespace)
	// The intent's write returned the batch, and most often nobody writes while the server answers.
	_, err := functions.PatchStatusFrom(ctx, pods, in.Pod, statuspatch.ChangePodSubmit, func(pod *v1alpha1.ChangePod) error {
		if pod.UID != in.Pod.UID {
			return errOutdated
		}
		written := false
		if callErr == nil {
			written = success(&pod.Status, attempt)
		} else {
			written = failed(&pod.Status, in.Stage, attempt, serverError(callErr, f.clock.Now()))
		}
		if !written {
			logging.FromContext(ctx).Infow("the call was given up before its answer came",
				"changepod", pod.Name, "stage", in.Stage, "attempt", attempt)
		}
		return nil
	})
	return err
}

// withinIntent ends the call when its intent is given up by others.
func (f *function) withinIntent(ctx context.Context, in Input) (context.Context, context.CancelFunc) {
	return f.within(ctx, in.Pod.Status.SubmissionOf(in.Stage).IntentTime.Time, in.CallDeadline)
}

func (f *function) within(ctx context.Context, intent time.Time, deadline time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(deadline-f.clock.Since(intent), time.Second))
}

// said is a verdict that function submit learned.
func (f *function) said(in Input, node, word string) events.ChangePodVerdict {
	return events.ChangePodVerdict{
		Namespace: in.Pod.Namespace, Name: in.Pod.Name, UID: in.Pod.UID,
		ChangeWorkload: in.Workload.Name, Version: in.Workload.Spec.Reversion, BizExecOrderID: in.Workload.Spec.OrderID,
		NodeID: node, Stage: in.Stage, Verdict: word, Time: metav1.NewMicroTime(f.clock.Now()),
	}
}
