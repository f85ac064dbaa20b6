// Package resend decides when a wake-up, an event that a function acts on, is
// sent again. Events may be lost, so the sender repeats a wake-up with
// exponential backoff until it observes the effect. Readmissions are repeated in the
// same way. It also records since when a process decides (DecidingSince), and extends
// deadlines that expired before (EndOfStage).
package resend

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// Intervals between two wake-ups with the same id.
const (
	minInterval = 2 * time.Second
	maxInterval = 30 * time.Second
)

// capacity is the maximum number of ids in a Schedule. The wake-up of an
// evicted id is sent too early, which is harmless.
const capacity = 20000

// Schedule records the wake-ups that were sent, in memory only: after a restart
// all pending wake-ups are sent again, which receivers tolerate.
type Schedule struct {
	clock   clock.PassiveClock
	backoff workqueue.TypedRateLimiter[string]
	// sent has a wakeUp by id.
	sent *lru.Cache
}

// New returns an empty schedule.
func New(c clock.PassiveClock) *Schedule { return NewWithin(c, minInterval, maxInterval) }

// NewWithin returns an empty schedule with other intervals. The first interval is least. Each
// further one is twice as long, up to most.
func NewWithin(c clock.PassiveClock, least, most time.Duration) *Schedule {
	s := &Schedule{clock: c, backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[string](least, most)}
	// Without this, the limiter would keep evicted ids and grow.
	s.sent = lru.NewWithEvictionFunc(capacity, func(key lru.Key, _ any) { s.backoff.Forget(key.(string)) })
	return s
}

// wakeUp is a wake-up that TakeDue reported as due.
type wakeUp struct {
	// first is when it was taken first, next when it is due again.
	first, next time.Time
	// waits: Pause was called after it was taken last. resumed is when it was taken after that.
	waits   bool
	resumed time.Time
}

// UntilDue returns how long until the wake-up with this id is due; 0 is now.
func (s *Schedule) UntilDue(id string) time.Duration {
	if w, ok := s.get(id); ok {
		return max(0, w.next.Sub(s.clock.Now()))
	}
	return 0
}

// Since returns the time at which the wake-up with this id was taken first. It is zero before
// that, and between Pause and the next wake-up. resumed is when it was taken after the last
// Pause, or zero.
func (s *Schedule) Since(id string) (first, resumed time.Time) {
	if w, _ := s.get(id); !w.waits {
		return w.first, w.resumed
	}
	return time.Time{}, time.Time{}
}

// Pause records that a wake-up waits: it was sent before and is due again, but is not sent now. The
// next TakeDue ends the wait.
func (s *Schedule) Pause(id string) {
	if w, ok := s.get(id); ok {
		w.waits = true
		s.sent.Add(id, w)
	}
}

func (s *Schedule) get(id string) (wakeUp, bool) {
	w, ok := s.sent.Get(id)
	if !ok {
		return wakeUp{}, false
	}
	return w.(wakeUp), true
}

// TakeDue reports whether the wake-up with this id is to be sent now, and after how long to
// call TakeDue again. A wake-up that is due counts as sent from then on.
func (s *Schedule) TakeDue(id string) (now bool, next time.Duration) {
	if wait := s.UntilDue(id); wait > 0 {
		return false, wait
	}
	t := s.clock.Now()
	w, ok := s.get(id)
	if !ok {
		w.first = t
	}
	if w.waits {
		w.waits, w.resumed = false, t
	}
	d := s.backoff.When(id)
	w.next = t.Add(d)
	s.sent.Add(id, w)
	return true, d
}

// Done removes the id: the effect was observed.
func (s *Schedule) Done(id string) {
	s.sent.Remove(id)
	s.backoff.Forget(id)
}
