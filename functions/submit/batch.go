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

// skipVerdict and skipMessage are the verdict of a skipped check.
const (
	skipVerdict = "none"
	skipMessage = "the server skips this check"
)

// start starts the batch at the server. Its intent is stored already.
func (f *function) start(ctx context.Context, server Server, in Input) error {
	call, cancel := f.intentContext(ctx, in)
	defer cancel()
	answer, callErr := server.StartBatch(call, startOf(in.Release, in.Batch, in.Now))
	err := f.storeResult(ctx, in, callErr, func(s *v1alpha1.ChangePodStatus, attempt int32) bool {
		return setStarted(s, attempt, answer.NodeID, f.clock.Now())
	})
	switch {
	case err != nil:
		return err
	case callErr != nil || !answer.SkipCheck:
		return callErr
	}
	// There will be no callback, so the stage is recorded as unjudged now and not at
	// the deadline.
	unjudged := f.verdictOf(in, answer.NodeID, skipVerdict)
	unjudged.Message = skipMessage
	return f.recorder.Record(ctx, unjudged, nil)
}

// finish calls the finish of the batch at the server. Its intent is stored already.
func (f *function) finish(ctx context.Context, server Server, in Input) error {
	call, cancel := f.intentContext(ctx, in)
	defer cancel()
	_, callErr := server.Finish(call, finishOf(in.Release, in.Batch, in.Now))
	if in.Batch.Status.SubmissionOf(in.Stage).Attempts > 1 && isCheckRunning(callErr) {
		callErr = nil // an earlier finish, whose answer was lost, had arrived
	}
	if callErr == nil && in.Batch.Status.SubmissionOf(in.Stage).Attempts == 1 {
		// The answer is cached instead of stored, to save a write: the verdict usually follows
		// at once and implies the answer. Without a verdict the answer is stored later. If this
		// process ends before, the answer counts as lost.
		f.cacheAnswer(in.Batch, f.clock.Now())
		return nil
	}
	err := f.storeResult(ctx, in, callErr, func(s *v1alpha1.ChangePodStatus, attempt int32) bool {
		return setFinishAccepted(s, attempt, f.clock.Now())
	})
	if err != nil {
		return err
	}
	return callErr
}

// isCheckRunning reports whether the server rejected a finish because the check of
// an earlier finish is running: the message then has state POST_AOP_SUBMIT.
func isCheckRunning(err error) bool {
	result, ok := errors.AsType[*altershield.ResultError](err)
	return ok && altershield.IsState(err) && strings.Contains(result.Msg, "POST_AOP")
}

// storeResult stores the result of the call whose intent is in the input. If a later
// intent exists, nothing is stored: the later call counts, and a verdict for the
// node of this one is dropped as outdated.
func (f *function) storeResult(ctx context.Context, in Input, callErr error, success func(*v1alpha1.ChangePodStatus, int32) bool) error {
	attempt := in.Batch.Status.SubmissionOf(in.Stage).Attempts
	batches := f.client.AppV1alpha1().ChangePods(in.Batch.Namespace)
	// in.Batch is the object returned by the write of the intent, and conflicts are
	// rare during the call.
	_, err := functions.PatchStatusFrom(ctx, batches, in.Batch, statuspatch.ChangePodSubmit, func(batch *v1alpha1.ChangePod) error {
		if batch.UID != in.Batch.UID {
			return errOutdated
		}
		written := false
		if callErr == nil {
			written = success(&batch.Status, attempt)
		} else {
			written = setError(&batch.Status, in.Stage, attempt, serverError(callErr, f.clock.Now()))
		}
		if !written {
			logging.FromContext(ctx).Infow("Answer ignored: a later call was made",
				"changepod", batch.Name, "stage", in.Stage, "call", attempt)
		}
		return nil
	})
	return err
}

// intentContext returns a context that ends when the intent of the call expires, but lasts
// at least a second. After the expiry another process may call.
func (f *function) intentContext(ctx context.Context, in Input) (context.Context, context.CancelFunc) {
	return f.contextOfCall(in.Reservation.Context(ctx), in.Batch.Status.SubmissionOf(in.Stage).IntentTime.Time, in.CallTimeout)
}

func (f *function) contextOfCall(ctx context.Context, intent time.Time, deadline time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(deadline-f.clock.Since(intent), time.Second))
}

// verdictOf returns a verdict from the server's answer to function submit.
func (f *function) verdictOf(in Input, node, verdict string) events.ChangePodVerdict {
	return events.ChangePodVerdict{
		Namespace: in.Batch.Namespace, Name: in.Batch.Name, UID: in.Batch.UID,
		ChangeWorkload: in.Release.Name, Version: in.Release.Spec.Reversion, BizExecOrderID: in.Release.Spec.OrderID,
		NodeID: node, Stage: in.Stage, Verdict: verdict, Time: metav1.NewMicroTime(f.clock.Now()),
	}
}
