package podbreaker

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// hold is how long who was let through may take to begin an attempt; who has
// not by then is taken for dead. A server gives up its call to the centre well
// before.
const acquireTimeout = 30 * time.Second

// maxSettled bounds how many applications of one pod are remembered: one for
// each set and address.
const maxSettled = 64

// Verb is what is asked of the breaker.
type Operation int

// The verbs.
const (
	// Begin asks whether an attempt may begin now.
	Acquire Operation = iota
	// Settle counts the end of an attempt that was not granted.
	RecordFailure
	// Succeed forgets all, because everything was granted.
	RecordSuccess
	// Reset lets the pod try again, because a person says so.
	Reset
)

// Request is one question.
type Request struct {
	Operation Operation
	Key       string
	UID       types.UID
	Now       time.Time
	// Spread is the random part of the backoff, from 0 to 1.
	Jitter float64

	// Holder tells callers apart, for Begin.
	Holder string

	// Application and Attempt are what ended, for Settle; without an application
	// Call is what failed.
	Application string
	Attempt     int
	Call        string
	// Denied: it was refused; otherwise it failed.
	Denied  bool
	Message string
}

// Outcome is whether an attempt may begin.
type Outcome string

// The outcomes.
const (
	// Closed: it may.
	Closed Outcome = "Closed"
	// Busy: somebody else was let through; ask again at Next.
	Busy Outcome = "Busy"
	// OpenDenied: not before somebody resets the breaker.
	OpenDenied Outcome = "OpenDenied"
	// OpenFailed: not before Next.
	OpenFailed Outcome = "OpenFailed"
)

// Decision is an answer.
type Decision struct {
	Outcome Outcome
	// Entry is what is known now; Exists says that there is anything.
	Entry  Entry
	Exists bool
	// Next is when to ask again, for Busy and OpenFailed.
	Next time.Time
	// Counted: this Settle was the one that counted.
	Counted bool
	// Opened: this Settle opened the breaker.
	Opened bool
}

// Policy is what may be tuned.
type Policy struct {
	// Threshold is how many denials or failures open the breaker.
	Threshold int
	// Backoff paces the tries while failures keep it open.
	Backoff wait.Backoff
}

// DefaultPolicy is that of the description.
func DefaultPolicy() Policy {
	return Policy{Threshold: 3, Backoff: wait.Backoff{
		Duration: 2 * time.Minute, Factor: 2, Jitter: 1, Steps: 5, Cap: time.Hour,
	}}
}

// State says what a Begin would be told; holder is who asks.
func (p Policy) State(e Entry, now time.Time, holder string) (Outcome, time.Time) {
	switch {
	case e.Denied >= p.Threshold:
		return OpenDenied, time.Time{}
	case e.Failed >= p.Threshold && now.Before(e.Next):
		return OpenFailed, e.Next
	case e.Holder != "" && e.Holder != holder && now.Before(e.Until):
		return Busy, e.Until
	}
	return Closed, time.Time{}
}

// Decide answers a request by the pod's entry. With a nil next entry nothing is
// to be written; remove says that the entry goes.
func (p Policy) Decide(e Entry, exists bool, r Request) (d Decision, next *Entry, remove bool) {
	switch r.Operation {
	case Acquire:
		d.Outcome, d.Next = p.State(e, r.Now, r.Holder)
		if d.Outcome == Closed && (e.Holder != r.Holder || !r.Now.Before(e.Until)) {
			e.Holder, e.Until = r.Holder, r.Now.Add(acquireTimeout)
			next = &e
		}
	case RecordFailure:
		d, next = p.recordFailure(e, exists, r)
	case RecordSuccess:
		e, remove = Entry{UID: r.UID}, exists
		d.Outcome, exists = Closed, false
	case Reset:
		// What was settled stays so: it must not count a second time.
		d.Outcome = Closed
		if exists {
			e = Entry{UID: e.UID, Settled: e.Settled, Call: e.Call}
			next = &e
		}
	}
	if next != nil {
		e, exists = *next, true
	}
	d.Entry, d.Exists = e, exists
	return d, next, remove
}

func (p Policy) recordFailure(e Entry, exists bool, r Request) (Decision, *Entry) {
	count := 1
	switch {
	case r.Application == "":
		if e.Call == r.Call {
			count = 0
		}
	case e.Settled[r.Application] >= r.Attempt:
		count = 0
	case exists:
		// An attempt that nobody reported is one all the same.
		count = r.Attempt - e.Settled[r.Application]
	}
	if count == 0 {
		outcome, at := p.State(e, r.Now, "")
		return Decision{Outcome: outcome, Next: at}, nil
	}
	before := p.isOpen(e)
	if r.Application == "" {
		e.Call = r.Call
	} else {
		e.Settled = withSettled(e.Settled, r.Application, r.Attempt)
	}
	e.Holder, e.Until = "", time.Time{}
	e.LastRequestFailTime, e.Message = r.Now, r.Message
	if r.Denied {
		e.Denied += count
	} else {
		e.Failed += count
	}
	if e.Failed >= p.Threshold && !r.Denied {
		e.Next = r.Now.Add(e.nextBackoff(p.Backoff, r.Jitter))
	}
	outcome, at := p.State(e, r.Now, "")
	return Decision{Outcome: outcome, Next: at, Counted: true, Opened: !before && p.isOpen(e)}, &e
}

// open: not every try is let through.
func (p Policy) isOpen(e Entry) bool { return e.Denied >= p.Threshold || e.Failed >= p.Threshold }

// settled returns the map with one attempt more; a map may be shared.
func withSettled(old map[string]int, application string, attempt int) map[string]int {
	next := map[string]int{application: attempt}
	for id, n := range old {
		if id != application && len(next) < maxSettled {
			next[id] = n
		}
	}
	return next
}
