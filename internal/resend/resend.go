// Package resend decides when a wake-up, an event that a function acts on, is
// sent again. Events may be lost, so the sender repeats a wake-up with
// exponential backoff until it observes the effect.
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
	due     *lru.Cache
}

// New returns an empty schedule.
func New(c clock.PassiveClock) *Schedule {
	s := &Schedule{
		clock:   c,
		backoff: workqueue.NewTypedItemExponentialFailureRateLimiter[string](minInterval, maxInterval),
	}
	// Without this, the limiter would keep evicted ids and grow.
	s.due = lru.NewWithEvictionFunc(capacity, func(key lru.Key, _ any) { s.backoff.Forget(key.(string)) })
	return s
}

// Due reports whether the wake-up with this id is to be sent now, and after how
// long to call Due again.
func (s *Schedule) Due(id string) (now bool, next time.Duration) {
	t := s.clock.Now()
	if at, ok := s.due.Get(id); ok && t.Before(at.(time.Time)) {
		return false, at.(time.Time).Sub(t)
	}
	d := s.backoff.When(id)
	s.due.Add(id, t.Add(d))
	return true, d
}

// Done removes the id: the effect was observed.
func (s *Schedule) Done(id string) {
	s.due.Remove(id)
	s.backoff.Forget(id)
}

// Sooner returns the shorter of two waits; 0 means none.
func Sooner(a, b time.Duration) time.Duration {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// DurationUntil returns the wait until a time. It is at least a millisecond,
// because 0 means none.
func DurationUntil(at, now time.Time) time.Duration { return max(at.Sub(now), time.Millisecond) }
