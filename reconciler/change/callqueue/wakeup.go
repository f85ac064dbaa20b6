package callqueue

import (
	"time"

	"github.com/breakwater-dev/breakwater/internal/deadline"
	"github.com/breakwater-dev/breakwater/internal/resend"
)

// TakeDue reports whether to send the wake-up of a call now: it is due in the schedule, and
// the call has its turn. It counts as sent from then on. Otherwise next is the time until the
// caller has to ask again; Call.Admitted may be called earlier.
//
// A wake-up that leads to no call does not wait for a turn. A wake-up that asks for a verdict
// is skipped while TakeQuestion has no question left: the server may call back meanwhile.
// TakeDue ends those wake-ups of the call that have another purpose.
func (q *Queue) TakeDue(wakeUps *resend.Schedule, c Call, purpose resend.Purpose, leadsToCall bool) (now bool, next time.Duration) {
	for _, other := range resend.Purposes() {
		if other != purpose {
			wakeUps.Done(other.ID(c.ID))
		}
	}
	id := purpose.ID(c.ID)
	if !leadsToCall {
		q.End(c.ID)
	}
	if wait := wakeUps.UntilDue(id); wait > 0 {
		if leadsToCall {
			q.EndEarlier(c)
		}
		return false, wait
	}
	if purpose == resend.ForVerdict && !q.TakeQuestion() {
		_, next = wakeUps.TakeDue(id)
		return false, next
	}
	if leadsToCall && !q.Begin(c) {
		wakeUps.Pause(id)
		return false, FlightTime
	}
	return wakeUps.TakeDue(id)
}

// NoCallCauses are the possible causes of a call that was not made within submit-timeout.
const NoCallCauses = "it may be that the Broker or function submit is unreachable, that the circuit breaker is open, or that ConfigMap config-altershield is invalid"

// WithinSubmitTimeout is the end of the message of a call that was not made.
func WithinSubmitTimeout(timeout time.Duration, cause string) string {
	return "within " + timeout.String() + " (submit-timeout): " + cause
}

// WokenSince returns the time from which the timeout of a call that was never made counts: when
// its wake-up was sent first. It is zero while the call waits in the queue. A call waits again
// if no effect of its wake-up was seen within FlightTime. When it gets its next turn, at least
// FlightTime is left of the timeout, or the whole timeout if that is shorter. After a time in which
// no process decided, the timeout begins again, as in a new process.
func WokenSince(wakeUps *resend.Schedule, id string, timeout time.Duration, decidingSince time.Time) time.Time {
	first, resumed := wakeUps.Since(resend.ForCall.ID(id))
	if !first.IsZero() {
		first = deadline.Latest(first, decidingSince)
	}
	return deadline.Latest(first, resumed.Add(min(FlightTime, timeout)-timeout))
}

// Done ends a call and its wake-ups.
func (q *Queue) Done(wakeUps *resend.Schedule, id string) {
	for _, purpose := range resend.Purposes() {
		wakeUps.Done(purpose.ID(id))
	}
	q.End(id)
}
