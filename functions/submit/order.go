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
func (f *function) handleOrder(ctx context.Context, server Server, w wakeUp, callDeadline time.Duration) error {
	in := OrderInput{CallDeadline: callDeadline}
	for range maxSteps {
		decision, err := f.decideOrder(ctx, w, &in)
		if err != nil {
			return err
		}
		stage := v1alpha1.Stage("")
		if s := in.Workload.Status.OrderStep; s != nil && s.Name != v1alpha1.OrderStepClose {
			stage = stageOf(s.Name)
		}
		f.recordDecision(ctx, w, stage, decision)
		switch decision.Outcome {
		case OpenOrder:
			_, err = f.openOrder(ctx, server, in.Workload)
		case AskRetrieve:
			var passed bool
			if passed, err = f.retrieveOrder(ctx, server, in.Workload, stage); passed {
				return err
			}
			in.Asked = true
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
	return fmt.Errorf("order changed at each of %d steps", maxSteps)
}

// decideOrder reads the release, decides, and writes the intent of a call.
func (f *function) decideOrder(ctx context.Context, w wakeUp, in *OrderInput) (Decision, error) {
	var decision Decision
	stored, err := functions.PatchStatus(ctx, f.client.AppV1alpha1().ChangeWorkloads(w.namespace), w.workload, statuspatch.ChangeWorkloadSubmit,
		func(c *v1alpha1.ChangeWorkload) error {
			if c.UID != w.workloadUID {
				return errOutdated
			}
			in.Workload, in.Now = c.DeepCopy(), f.clock.Now()
			decision = DecideOrder(*in)
			switch decision.Outcome {
			case StartOrder, FinishOrder:
				writeIntent(&c.Status.Order.Submissions, stageOf(c.Status.OrderStep.Name), in.Now)
			case CloseOrder:
				writeCloseIntent(c.Status.Order, c.Status.OrderStep.State, in.Now)
			}
			return nil
		})
	in.Workload = stored
	return decision, err
}

// startOrder makes the call for a written intent.
func (f *function) startOrder(ctx context.Context, server Server, in OrderInput) error {
	intent := in.Workload.Status.Order.SubmissionOf(v1alpha1.StagePre)
	call, cancel := f.callContext(ctx, intent.IntentTime.Time, in.CallDeadline)
	defer cancel()
	answer, callErr := server.StartOrder(call, altershield.StartOrder{OrderID: in.Workload.Spec.OrderID, StartTime: in.Now})
	return f.storeOrderResult(ctx, in.Workload, callErr, func(o *v1alpha1.Order) {
		s := pendingSubmission(o.Submissions, v1alpha1.StagePre, intent.Attempts)
		switch {
		case s == nil:
			f.logIgnored(ctx, in.Workload.Name, v1alpha1.StagePre)
		case callErr != nil:
			s.Error = serverError(callErr, f.clock.Now())
		default:
			storeAnswer(s, f.clock.Now())
			o.NodeID, o.Skipped = answer.NodeID, answer.SkipCheck
		}
	})
}

// finishOrder makes the call for a written intent.
func (f *function) finishOrder(ctx context.Context, server Server, in OrderInput) error {
	intent := in.Workload.Status.Order.SubmissionOf(v1alpha1.StagePost)
	call, cancel := f.callContext(ctx, intent.IntentTime.Time, in.CallDeadline)
	defer cancel()
	_, callErr := server.Finish(call, altershield.Finish{
		OrderID: in.Workload.Spec.OrderID, NodeID: in.Workload.Status.Order.Node(),
		Message:    fmt.Sprintf("%d pods passed", in.Workload.Status.Counts.Passed),
		Result:     paramsOf(in.Workload),
		FinishTime: in.Now,
	})
	if intent.Attempts > 1 && isCheckRunning(callErr) {
		callErr = nil // an earlier finish, whose answer was lost, had arrived
	}
	return f.storeOrderResult(ctx, in.Workload, callErr, func(o *v1alpha1.Order) {
		s := pendingSubmission(o.Submissions, v1alpha1.StagePost, intent.Attempts)
		switch {
		case s == nil:
			f.logIgnored(ctx, in.Workload.Name, v1alpha1.StagePost)
		case callErr != nil:
			s.Error = serverError(callErr, f.clock.Now())
		default:
			storeAnswer(s, f.clock.Now())
		}
	})
}

// closeOrder makes the call for a written intent.
func (f *function) closeOrder(ctx context.Context, server Server, in OrderInput) error {
	intent := in.Workload.Status.Order.Closing
	call, cancel := f.callContext(ctx, intent.IntentTime.Time, in.CallDeadline)
	defer cancel()
	n := in.Workload.Status.Counts
	callErr := server.CloseOrder(call, altershield.CloseOrder{
		OrderID: in.Workload.Spec.OrderID, State: altershield.FinishState(intent.State),
		Message:    fmt.Sprintf("%d of %d pods passed, %d failed", n.Passed, n.Pods, n.Failed),
		FinishTime: in.Now,
	})
	return f.storeOrderResult(ctx, in.Workload, callErr, func(o *v1alpha1.Order) {
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
// it if it is a pass. All other answers have no meaning.
func (f *function) retrieveOrder(ctx context.Context, server Server, w *v1alpha1.ChangeWorkload, stage v1alpha1.Stage) (passed bool, err error) {
	node := w.Status.Order.Node()
	answer, err := server.Retrieve(ctx, altershield.Retrieve{OrderID: w.Spec.OrderID, NodeID: node, Stage: stage})
	switch {
	case isRejected(err):
		return false, nil
	case err != nil || !answer.Passed():
		return false, err
	}
	return true, f.recorder.RecordOrder(ctx, events.OrderVerdict{
		Namespace: w.Namespace, Name: w.Name, UID: w.UID, Version: w.Spec.Reversion, BizExecOrderID: w.Spec.OrderID,
		NodeID: node, Stage: stage, Verdict: answer.Verdict, Time: metav1.NewMicroTime(f.clock.Now()),
	}, nil)
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

func (f *function) logIgnored(ctx context.Context, name string, stage v1alpha1.Stage) {
	logging.FromContext(ctx).Infow("Answer ignored: a later call was made", "changeworkload", name, "stage", stage)
}
