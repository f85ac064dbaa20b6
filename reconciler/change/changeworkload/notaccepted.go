package changeworkload

import (
	"time"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/deadline"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/reconciler/change/callqueue"
)

// orderDeadline is until when Breakwater waits for the server to accept the order; then
// no-verdict decides, and the reason is OrderNotAccepted instead of OrderPending.
// order-timeout counts from the first result of a call; until there is one, submit-timeout counts from
// wokenSince. Zero means that the wait has no end yet: the call waits in the queue, or the server was
// configured just now.
func orderDeadline(in Input) time.Time {
	requested, ok := in.ChangeWorkload.Status.Order.FirstResult()
	cond := in.ChangeWorkload.Status.GetCondition(v1alpha1.ReleaseOrderAccepted)
	switch {
	case cond == nil, cond.Reason == v1alpha1.ReasonNoServerConfigured:
		return time.Time{} // the server was configured just now
	case cond.Reason == v1alpha1.ReasonOrderNotAccepted:
		return in.Now // also if a process that decided so has ended: its hold must not end with it
	case ok:
		// The call may have been made before the server was configured again.
		requested = deadline.Latest(requested, cond.LastTransitionTime.Inner.Time)
		return resend.ExtendDeadline(requested.Add(in.Settings.OrderTimeout), in.DecidingSince, in.Now, resend.RetrieveGrace)
	}
	if woken := wokenSince(in, v1alpha1.OrderStepStart); !woken.IsZero() {
		return woken.Add(in.Settings.SubmitTimeout)
	}
	return time.Time{}
}

// decideOrderNotAccepted decides a release whose order the server did not accept
// in time. With policy Hold the release waits instead.
func decideOrderNotAccepted(in Input, d Decision) Decision {
	d.Phase, d.Reason, d.Detail = v1alpha1.ReleaseFailed, v1alpha1.ReasonOrderNotAccepted, notAccepted(in)
	d.Order.WakeSubmit = false
	if in.Settings.PolicyOfUnacceptedOrder() == v1alpha1.NoVerdictFail {
		d.Phase, d.Action = v1alpha1.ReleaseSuspend, suspendAction(in)
	}
	return d
}

// notAccepted is the message of an order that the server did not accept in time: the server
// was not called, or it rejected the order or did not answer.
func notAccepted(in Input) string {
	o := in.ChangeWorkload.Status.Order
	if _, requested := o.FirstResult(); !requested {
		cause := callqueue.NoCallCauses
		if o != nil && o.Error != nil {
			cause = o.Error.Message // its configuration is invalid
		}
		return "the server was not called to open the order " + callqueue.WithinSubmitTimeout(in.Settings.SubmitTimeout, cause)
	}
	detail := "the server did not accept the order within " + in.Settings.OrderTimeout.String() + " (order-timeout)"
	if o.Error != nil {
		detail += ": " + o.Error.Message
	}
	return detail
}
