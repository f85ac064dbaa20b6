package podbreaker

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/breakwater-dev/breakwater/internal/text"
)

// holdTime is how long a caller has the breaker to begin an attempt. After
// that another caller may begin. It is longer than the timeout of a call of
// init-action-server to the permission centre.
const holdTime = 30 * time.Second

// maxClockSkew is how far the clock of the caller that wrote an entry may be ahead. An entry from a
// later time restricts nothing: the clock has been corrected, or the writer's is wrong.
const maxClockSkew = time.Minute

// maxCounted bounds the applications in the entry of one pod. A pod has one
// application for each set, list of addresses and name of its cluster.
const maxCounted = 64

// maxMessage bounds the message in an entry in bytes: many entries share a ConfigMap.
const maxMessage = 1024

// Operation is the operation of a Request.
type Operation int

// The operations.
const (
	// Acquire asks whether an attempt may begin now.
	Acquire Operation = iota
	// RecordFailure counts an attempt that was denied or failed.
	RecordFailure
	// RecordSuccess removes the entry, because all permissions were granted.
	RecordSuccess
	// Reset closes the breaker on behalf of a user.
	Reset
)

// Request is one operation on the entry of a pod.
type Request struct {
	Operation Operation
	// Key is the key of the pod's entry; see func Key.
	Key string
	UID types.UID
	Now time.Time
	// Jitter is the random part of the backoff, from 0 to 1.
	Jitter float64

	// Holder identifies the caller, for Acquire.
	Holder string

	// Application and Attempt identify the attempt that ended, for RecordFailure.
	Application string
	Attempt     int
	// Call identifies a call that failed before it had an application.
	Call string
	// Denied is true if the attempt was denied, false if it failed.
	Denied bool
	// Message says why the attempt was unsuccessful, for people.
	Message string
}

// State reports whether an attempt may begin.
type State string

// The states.
const (
	// MayBegin: an attempt may begin, because the breaker is closed, or because it is open
	// by failed attempts and its interval has passed.
	MayBegin State = "MayBegin"
	// Busy: another caller has the breaker; retry at Next.
	Busy State = "Busy"
	// OpenDenied: no attempt may begin until the breaker is reset.
	OpenDenied State = "OpenDenied"
	// OpenFailed: no attempt may begin before Next.
	OpenFailed State = "OpenFailed"
)

// Decision is the result of a Request.
type Decision struct {
	State State
	// Entry is the entry after the operation; Exists is false if there is none.
	Entry  Entry
	Exists bool
	// Next is when to retry, for Busy and OpenFailed.
	Next time.Time
	// Counted is true if this RecordFailure counted, and false if it repeats one.
	Counted bool
	// Opened is true if this RecordFailure opened the breaker.
	Opened bool
}

// Policy is the configuration of the breaker.
type Policy struct {
	// Threshold is how many denied attempts, or failed attempts, open the breaker.
	Threshold int
	// Backoff is the interval between attempts while failed attempts keep the breaker open.
	Backoff wait.Backoff
}

// DefaultPolicy returns the documented defaults.
func DefaultPolicy() Policy {
	return Policy{Threshold: 3, Backoff: wait.Backoff{
		Duration: 2 * time.Minute, Factor: 2, Jitter: 1, Steps: 5, Cap: time.Hour,
	}}
}

// State returns the state that an Acquire by holder meets, and when to retry.
func (p Policy) State(e Entry, now time.Time, holder string) (State, time.Time) {
	latest := now.Add(maxClockSkew)
	switch {
	case e.Denied >= p.Threshold:
		return OpenDenied, time.Time{}
	case e.Failed >= p.Threshold && now.Before(e.Next) && !e.LastRequestFailTime.After(latest):
		return OpenFailed, e.Next
	case e.Holder != "" && e.Holder != holder && now.Before(e.Until) && !e.Until.After(latest.Add(holdTime)):
		return Busy, e.Until
	}
	return MayBegin, time.Time{}
}

// Decide applies a request to the entry of a pod. It returns the entry to write,
// nil if there is none, and whether to remove the entry.
func (p Policy) Decide(e Entry, exists bool, r Request) (d Decision, next *Entry, remove bool) {
	switch r.Operation {
	case Acquire:
		d.State, d.Next = p.State(e, r.Now, r.Holder)
		if d.State == MayBegin && (e.Holder != r.Holder || !r.Now.Before(e.Until)) {
			e.Holder, e.Until = r.Holder, r.Now.Add(holdTime)
			next = &e
		}
	case RecordFailure:
		d, next = p.recordFailure(e, r)
	case RecordSuccess:
		e, remove = Entry{UID: r.UID}, exists
		d.State, exists = MayBegin, false
	case Reset:
		// Counted attempts stay recorded, so that a repeated RecordFailure does not
		// count them again.
		d.State = MayBegin
		if exists {
			e = Entry{UID: e.UID, Counted: e.Counted, Call: e.Call}
			next = &e
		}
	}
	if next != nil {
		e, exists = *next, true
	}
	d.Entry, d.Exists = e, exists
	return d, next, remove
}

func (p Policy) recordFailure(e Entry, r Request) (Decision, *Entry) {
	count := 1
	counted, known := e.Counted[r.Application]
	switch {
	case r.Application == "":
		if e.Call == r.Call {
			count = 0
		}
	case counted >= r.Attempt:
		count = 0
	case known:
		// Attempts that were not recorded count too. Without a counted attempt of this application, the
		// earlier ones may have been before a success, which removed the entry.
		count = r.Attempt - counted
	}
	if count == 0 {
		state, at := p.State(e, r.Now, "")
		return Decision{State: state, Next: at}, nil
	}
	before := p.isOpen(e)
	if e.LastRequestFailTime.After(r.Now.Add(maxClockSkew)) {
		e.Next = time.Time{} // of a clock that was ahead
	}
	if r.Application == "" {
		e.Call = r.Call
	} else {
		e.Counted = withCounted(e.Counted, r.Application, r.Attempt)
	}
	e.Holder, e.Until = "", time.Time{}
	e.LastRequestFailTime, e.Message = r.Now, text.Truncate(r.Message, maxMessage)
	if r.Denied {
		e.Denied += count
	} else {
		e.Failed += count
	}
	if e.Failed >= p.Threshold && !r.Denied {
		e.Next = r.Now.Add(e.nextBackoff(p.Backoff, r.Jitter))
	}
	state, at := p.State(e, r.Now, "")
	return Decision{State: state, Next: at, Counted: true, Opened: !before && p.isOpen(e)}, &e
}

// isOpen reports whether the breaker restricts attempts.
func (p Policy) isOpen(e Entry) bool { return e.Denied >= p.Threshold || e.Failed >= p.Threshold }

// withCounted returns a copy of the map with one more attempt. It does not modify
// the map, which may be shared.
func withCounted(old map[string]int, application string, attempt int) map[string]int {
	next := map[string]int{application: attempt}
	for id, n := range old {
		if id != application && len(next) < maxCounted {
			next[id] = n
		}
	}
	return next
}
