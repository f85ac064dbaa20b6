package submit

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// OrderInput has everything that a decision about an order depends on.
type OrderInput struct {
	Release *v1alpha1.ChangeWorkload
	callContext
}

// stageOf returns the stage of the order check for a step.
func stageOf(step v1alpha1.OrderStepName) v1alpha1.Stage {
	if step == v1alpha1.OrderStepFinish {
		return v1alpha1.StagePost
	}
	return v1alpha1.StagePre
}

// DecideOrder returns the action for a wake-up for an order. It depends on the step
// in the object and not on the step in the event.
func DecideOrder(in OrderInput) Decision {
	w := in.Release
	step := w.Status.OrderStep
	switch {
	case w.Spec.Attempt == 0:
		return Decision{Nothing, "a baseline is not judged"}
	case step == nil:
		return Decision{Nothing, "the order needs no call"}
	case step.Name == v1alpha1.OrderStepClose:
		return decideClose(in) // also if the release is deleted
	case w.DeletionTimestamp != nil:
		return Decision{Nothing, "the release is terminating"}
	case w.Status.Phase == v1alpha1.ReleaseFailed && w.Status.OrderAbandoned():
		return Decision{Nothing, "the server did not accept the order in time"}
	case w.Status.FailedAndReplaced():
		return Decision{Nothing, "a newer template was applied"} // the order is only closed
	case !w.Status.Order.Opened() && step.Name == v1alpha1.OrderStepStart:
		return Decision{OpenOrder, "the order is not open"}
	case w.Status.OrderVerdictOf(stageOf(step.Name)).EndsStage():
		return Decision{Nothing, "the verdict is stored"}
	case w.Status.Order != nil && w.Status.Order.Skipped:
		return Decision{Nothing, "the server does not judge the order"}
	case step.Name == v1alpha1.OrderStepFinish && w.Status.Order.Node() == "":
		return Decision{Nothing, "the order was not started"}
	}
	stage := stageOf(step.Name)
	return nextCall(callState{
		submission: w.Status.Order.SubmissionOf(stage), verdict: w.Status.OrderVerdictOf(stage), node: w.Status.Order.Node(), stage: stage,
		first:       map[v1alpha1.Stage]Action{v1alpha1.StagePre: StartOrder, v1alpha1.StagePost: FinishOrder}[stage],
		callContext: in.callContext,
	})
}

// decideClose decides about closing the order. Closing twice has no effect, but the
// attempts are limited. An attempt whose result was not stored is repeated, also the last one.
func decideClose(in OrderInput) Decision {
	o := in.Release.Status.Order
	switch {
	case !o.Opened():
		return Decision{Nothing, "the order was not opened"}
	case o.ClosingDone():
		return Decision{Nothing, "the order is closed, or the server rejected the call, or all attempts failed"}
	case o.Closing != nil && o.Closing.Error == nil && in.Now.Sub(o.Closing.IntentTime.Time) < in.CallTimeout:
		return Decision{InFlight, "another call is in flight"}
	default:
		return Decision{CloseOrder, "the release has ended"}
	}
}

// setCloseIntent sets the intent to close the order.
func setCloseIntent(o *v1alpha1.Order, state v1alpha1.OrderState, now time.Time) {
	next := &v1alpha1.OrderClosing{State: state, IntentTime: metav1.NewMicroTime(now), Attempts: 1}
	if o.Closing != nil {
		next.Attempts = o.Closing.Attempts + 1
		next.State = o.Closing.State // the server may have it already
	}
	o.Closing = next
}
