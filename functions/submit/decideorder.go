package submit

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// The outcomes for the order as a whole.
const (
	// StartOrder asks for the PRE check of the order.
	StartOrder Outcome = "start-order"
	// FinishOrder asks for the POST check of the order.
	FinishOrder Outcome = "finish-order"
	// CloseOrder tells the server how the release ended.
	CloseOrder Outcome = "close-order"
)

// OrderInput is all that a decision about an order depends on.
type OrderInput struct {
	Workload *v1alpha1.ChangeWorkload
	// Asked, Now and CallDeadline are as in Input.
	Asked        bool
	Now          time.Time
	CallDeadline time.Duration
}

// stageOf is the stage of the order's check that a step is about.
func stageOf(step v1alpha1.OrderStepName) v1alpha1.Stage {
	if step == v1alpha1.OrderStepFinish {
		return v1alpha1.StagePost
	}
	return v1alpha1.StagePre
}

// DecideOrder says what a wake-up for an order leads to: from the step that the
// object waits for, not the one that the event names.
func DecideOrder(in OrderInput) Decision {
	w := in.Workload
	step := w.Status.OrderStep
	switch {
	case w.DeletionTimestamp != nil:
		return Decision{Nothing, "the release is being deleted"}
	case w.Spec.Attempt == 0:
		return Decision{Nothing, "a baseline is not judged"}
	case step == nil:
		return Decision{Nothing, "the order waits for nothing"}
	case step.Name == v1alpha1.OrderStepClose:
		return closeOrder(in)
	case w.Status.Phase == v1alpha1.WorkloadFailed:
		return Decision{Nothing, "the server did not take the order in time"}
	case !w.Status.Order.Opened() && step.Name == v1alpha1.OrderStepStart:
		return Decision{OpenOrder, "the order is not open"}
	case w.Status.OrderVerdictOf(stageOf(step.Name)) != nil:
		return Decision{Nothing, "the verdict is there"}
	case w.Status.Order != nil && w.Status.Order.Skipped:
		return Decision{Nothing, "the server does not judge the order"}
	case step.Name == v1alpha1.OrderStepFinish && w.Status.Order.Node() == "":
		return Decision{Nothing, "the order was not started"}
	}
	first := map[v1alpha1.Stage]Outcome{v1alpha1.StagePre: StartOrder, v1alpha1.StagePost: FinishOrder}[stageOf(step.Name)]
	return nextCall(in.Workload.Status.Order.SubmissionOf(stageOf(step.Name)), stageOf(step.Name), first, in.Asked, in.Now, in.CallDeadline)
}

// closeOrder: closing twice does no harm, but its tries are counted.
func closeOrder(in OrderInput) Decision {
	o := in.Workload.Status.Order
	switch {
	case !o.Opened():
		return Decision{Nothing, "the order was not opened"}
	case o.Closed():
		return Decision{Nothing, "the order is closed, or was tried to be often enough"}
	case o.Closing != nil && o.Closing.Error == nil && in.Now.Sub(o.Closing.IntentTime.Time) < in.CallDeadline:
		return Decision{InFlight, "somebody is calling"}
	case o.Closing != nil && o.Closing.Attempts >= v1alpha1.MaxClosingAttempts:
		return Decision{Nothing, "the order was tried to be closed often enough"}
	default:
		return Decision{CloseOrder, "the release has ended"}
	}
}

// claimClosing writes the intent to close the order.
func claimClosing(o *v1alpha1.Order, state v1alpha1.OrderState, now time.Time) {
	next := &v1alpha1.OrderClosing{State: state, IntentTime: metav1.NewMicroTime(now), Attempts: 1}
	if o.Closing != nil {
		next.Attempts = o.Closing.Attempts + 1
		next.State = o.Closing.State // the server may know it
	}
	o.Closing = next
}
