package submit

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
)

// handleOrder decides and acts for the order until nothing is left to do.
func (f *function) handleOrder(ctx context.Context, server Server, w wakeUp, callTimeout time.Duration) error {
	in := OrderInput{callContext: callContext{CallTimeout: callTimeout}}
	for range maxSteps {
		decision, err := f.decideAndStoreOrder(ctx, server, w, &in)
		if err != nil {
			return err
		}
		stage := v1alpha1.Stage("")
		if s := in.Release.Status.OrderStep; s != nil && s.Name != v1alpha1.OrderStepClose {
			stage = stageOf(s.Name)
		}
		f.recordDecision(ctx, w, stage, decision)
		switch decision.Action {
		case OpenOrder:
			_, err = f.openOrder(ctx, server, in.Release)
		case AskRetrieve:
			var passed bool
			if passed, err = f.retrieveOrder(ctx, server, in.Release, stage); passed {
				return err
			}
			in.Asked = true
		case Resubmit:
			if in.NotBegunNode, err = f.resubmitOrder(ctx, server, in.Release); in.NotBegunNode == "" {
				return err
			}
		case StartOrder:
			return f.startOrder(ctx, server, in)
		case FinishOrder:
			return f.finishOrder(ctx, server, in)
		case CloseOrder:
			return f.closeOrder(ctx, server, in)
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
	return fmt.Errorf("gave up after %d decisions in one wake-up, each of which needed another one about the order", maxSteps)
}

// decideAndStoreOrder reads the release and decides. For a call it waits for the rate limit,
// and then writes the intent.
func (f *function) decideAndStoreOrder(ctx context.Context, server Server, w wakeUp, in *OrderInput) (Decision, error) {
	releases := f.client.AppV1alpha1().ChangeWorkloads(w.namespace)
	c, err := releases.Get(ctx, w.release, metav1.GetOptions{})
	if err != nil {
		return Decision{}, fmt.Errorf("read %s: %w", w.release, err)
	}
	decision, err := f.decideOnOrder(c, w, in)
	if err != nil || !decision.writesOrder() {
		return decision, err
	}
	if in.Reservation, decision = reserve(ctx, server, decision, in.CallTimeout); !decision.writesOrder() {
		return decision, nil
	}
	in.Release, err = functions.PatchStatusFrom(ctx, releases, c, statuspatch.ChangeWorkloadSubmit, func(c *v1alpha1.ChangeWorkload) error {
		var err error
		if decision, err = f.decideOnOrder(c, w, in); err != nil {
			return err
		}
		switch decision.Action {
		case StartOrder, FinishOrder:
			setOrderIntent(&c.Status, stageOf(c.Status.OrderStep.Name), in.Now)
		case CloseOrder:
			setCloseIntent(c.Status.Order, c.Status.OrderStep.State, in.Now)
		}
		return nil
	})
	if err != nil || !decision.writesOrder() {
		in.Reservation.Cancel()
	}
	return decision, err
}

// decideOnOrder decides on a release as it is stored.
func (f *function) decideOnOrder(c *v1alpha1.ChangeWorkload, w wakeUp, in *OrderInput) (Decision, error) {
	if c.UID != w.releaseUID {
		return Decision{}, errOutdated
	}
	in.Release, in.Now = c.DeepCopy(), f.clock.Now()
	return DecideOrder(*in), nil
}

// startOrder starts the order at the server. Its intent is stored already.
func (f *function) startOrder(ctx context.Context, server Server, in OrderInput) error {
	intent := in.Release.Status.Order.SubmissionOf(v1alpha1.StagePre)
	call, cancel := f.contextOfCall(in.Reservation.Context(ctx), intent.IntentTime.Time, in.CallTimeout)
	defer cancel()
	answer, callErr := server.StartOrder(call, altershield.StartOrder{OrderID: in.Release.Spec.OrderID, StartTime: in.Now})
	return f.storeOrderAnswer(ctx, in.Release, intent, callErr, func(o *v1alpha1.Order, s *v1alpha1.Submission) {
		setOrderStarted(o, s, answer, f.clock.Now())
	})
}

// finishOrder calls the finish of the order at the server. Its intent is stored already.
func (f *function) finishOrder(ctx context.Context, server Server, in OrderInput) error {
	intent := in.Release.Status.Order.SubmissionOf(v1alpha1.StagePost)
	call, cancel := f.contextOfCall(in.Reservation.Context(ctx), intent.IntentTime.Time, in.CallTimeout)
	defer cancel()
	_, callErr := server.Finish(call, altershield.Finish{
		OrderID: in.Release.Spec.OrderID, NodeID: in.Release.Status.Order.Node(),
		Message:    fmt.Sprintf("%d pods passed", in.Release.Status.Counts.Passed),
		Result:     paramsOf(in.Release),
		FinishTime: in.Now,
	})
	if intent.Attempts > 1 && isCheckRunning(callErr) {
		callErr = nil // an earlier finish, whose answer was lost, had arrived
	}
	return f.storeOrderAnswer(ctx, in.Release, intent, callErr, func(_ *v1alpha1.Order, s *v1alpha1.Submission) {
		setAnswered(s, f.clock.Now())
	})
}

// storeOrderAnswer stores the answer to the call of an intent, unless a later call was made. answered stores an
// answer without an error.
func (f *function) storeOrderAnswer(ctx context.Context, w *v1alpha1.ChangeWorkload, intent *v1alpha1.Submission, callErr error, answered func(*v1alpha1.Order, *v1alpha1.Submission)) error {
	return f.storeOrderResult(ctx, w, callErr, func(o *v1alpha1.Order) {
		s := pendingSubmission(o.Submissions, intent.Stage, intent.Attempts)
		switch {
		case s == nil:
			logging.FromContext(ctx).Infow("Answer ignored: a later call was made", "changeworkload", w.Name, "stage", intent.Stage)
		case callErr != nil:
			s.Error = serverError(callErr, f.clock.Now())
		default:
			answered(o, s)
		}
	})
}

// closeOrder closes the order at the server. Its intent is stored already.
func (f *function) closeOrder(ctx context.Context, server Server, in OrderInput) error {
	intent := in.Release.Status.Order.Closing
	call, cancel := f.contextOfCall(in.Reservation.Context(ctx), intent.IntentTime.Time, in.CallTimeout)
	defer cancel()
	n := in.Release.Status.Counts
	callErr := server.CloseOrder(call, altershield.CloseOrder{
		OrderID: in.Release.Spec.OrderID, State: altershield.CloseState(intent.State),
		Message:    fmt.Sprintf("%d of %d pods passed, %d failed", n.Passed, n.Pods, n.Failed),
		FinishTime: in.Now,
	})
	return f.storeOrderResult(ctx, in.Release, callErr, func(o *v1alpha1.Order) {
		if o.Closing == nil || o.Closing.Attempts != intent.Attempts {
			return
		}
		at := metav1.NewMicroTime(f.clock.Now())
		if callErr != nil {
			o.Closing.Error = serverError(callErr, at.Time)
		} else {
			o.Closing.AnsweredTime, o.Closing.Error = &at, nil
		}
	})
}

// retrieveOrder asks the server for the verdict of a stage of the order and records
// it if it is a pass. Any other answer contradicts an unconfirmed pass; otherwise it has no
// meaning.
func (f *function) retrieveOrder(ctx context.Context, server Server, w *v1alpha1.ChangeWorkload, stage v1alpha1.Stage) (passed bool, err error) {
	stored := w.Status.OrderVerdictOf(stage)
	node, answer, err := retrieveAny(ctx, server, w.Spec.OrderID, stage, w.Status.Order.Nodes(), stored)
	v := events.OrderVerdict{
		Namespace: w.Namespace, Name: w.Name, UID: w.UID, Version: w.Spec.Reversion, BizExecOrderID: w.Spec.OrderID,
		NodeID: node, Stage: stage, Verdict: answer.Verdict, Time: metav1.NewMicroTime(f.clock.Now()),
	}
	switch {
	case err != nil || node == "":
		return false, err
	case answer.Passed():
		return true, f.recorder.RecordOrder(ctx, v, nil)
	case stored.Unconfirmed() && !stored.Contradicted:
		v.Verdict, v.WithoutRules = stored.Verdict, true
		return false, f.recorder.RecordOrder(ctx, v, retrieved(answer))
	default:
		return false, nil
	}
}

// resubmitOrder runs the PRE check of the order again. It returns the node if its check
// has not begun.
func (f *function) resubmitOrder(ctx context.Context, server Server, w *v1alpha1.ChangeWorkload) (notBegun string, err error) {
	start := w.Status.Order.SubmissionOf(v1alpha1.StagePre)
	accepted, notBegun, err := resubmitNode(ctx, server, w.Spec.OrderID, w.Status.Order.Node())
	if !accepted {
		return notBegun, err
	}
	return "", f.storeOrderResult(ctx, w, nil, func(o *v1alpha1.Order) { setResumed(o.Submissions, start, f.clock.Now()) })
}

// storeOrderResult stores the result of a call and returns the error of the call.
func (f *function) storeOrderResult(ctx context.Context, w *v1alpha1.ChangeWorkload, callErr error, write func(*v1alpha1.Order)) error {
	_, err := functions.PatchStatus(ctx, f.client.AppV1alpha1().ChangeWorkloads(w.Namespace), w.Name, statuspatch.ChangeWorkloadSubmit,
		func(c *v1alpha1.ChangeWorkload) error {
			if c.UID != w.UID || c.Status.Order == nil {
				return errOutdated
			}
			write(c.Status.Order)
			return nil
		})
	if err != nil {
		return err
	}
	return callErr
}
