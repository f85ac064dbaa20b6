// Package resend says when an event that wakes a function is due again. An
// event may be lost, so whoever waits for its effect sends it again, with
// growing distance, until the effect is there.
package resend

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// Distances between two sendings of one event.
const (
	minInterval = 2 * time.Second
	maxInterval = 30 * time.Second
)

// capacity bounds how many waiting facts are remembered. Forgetting one means
// that its event is sent earlier than due, which is harmless.
const capacity = 20000

// Schedule remembers what was sent. It is in memory only: after a restart
// everything that waits is sent once more, which receivers tolerate.
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
	// What leaves the cache must leave the limiter too, or that would grow.
	s.due = lru.NewWithEvictionFunc(capacity, func(key lru.Key, _ any) { s.backoff.Forget(key.(string)) })
	return s
}

// Due says whether the event with this id is to be sent now, and after how
// long to ask again.
func (s *Schedule) Due(id string) (now bool, next time.Duration) {
	t := s.clock.Now()
	if at, ok := s.due.Get(id); ok && t.Before(at.(time.Time)) {
		return false, at.(time.Time).Sub(t)
	}
	d := s.backoff.When(id)
	s.due.Add(id, t.Add(d))
	return true, d
}

// Done forgets the event: its effect is there.
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

// Until returns the wait for a time; one that is over is waited for a moment,
// because 0 would mean that nothing is waited for.
func Until(at, now time.Time) time.Duration { return max(at.Sub(now), time.Millisecond) }
