// Package ratelimit enforces the rate limit of a provider across all replicas.
// The store holds the time of the next call for each provider: the generic cell
// rate algorithm. A call reserves a slot, which is a time, and is made at that
// time. A call that is late reserves another slot, so delayed calls never burst.
package ratelimit

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

const (
	// maxLateness is how late a call may use its slot, so up to 1.05 s of slots
	// fall into one second. rateMargin lowers the rate to compensate: no second
	// has more than limit + burst calls.
	maxLateness = 50 * time.Millisecond
	rateMargin  = 0.95

	// reserveWindow bounds the slots that are reserved in one transaction.
	reserveWindow = 250 * time.Millisecond
)

// NoSlot is returned if the next slot is beyond the horizon.
type NoSlot struct{ Until time.Time }

func (n NoSlot) Error() string { return "no slot before " + n.Until.Format(time.RFC3339) }

// Limiter reserves slots.
type Limiter struct {
	store *store.Store
	clock clock.Clock

	mu     sync.Mutex
	queues map[string]*waitQueue
}

// waitQueue holds the callers that wait for slots of one provider.
type waitQueue struct {
	// leader is held by the caller that reserves slots for all waiting callers.
	leader  sync.Mutex
	slots   []time.Time
	mu      sync.Mutex
	waiting int
}

// New creates a Limiter.
func New(s *store.Store, c clock.Clock) *Limiter {
	return &Limiter{store: s, clock: c, queues: map[string]*waitQueue{}}
}

// Reserve returns a slot for a call to the provider within horizon, or NoSlot.
func (l *Limiter) Reserve(ctx context.Context, provider string, limit api.RateLimit, horizon time.Duration) (time.Time, error) {
	q := l.queue(provider)
	q.count(1)
	defer q.count(-1)
	q.leader.Lock()
	defer q.leader.Unlock()
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	for len(q.slots) > 0 {
		at := q.slots[0]
		q.slots = q.slots[1:]
		if !l.Expired(at) {
			return at, nil
		}
	}
	slots, err := l.reserveBatch(ctx, provider, limit, q.count(0), horizon)
	if err != nil {
		return time.Time{}, err
	}
	q.slots = slots[1:]
	return slots[0], nil
}

// Expired reports whether a slot is too far in the past to be used.
func (l *Limiter) Expired(at time.Time) bool { return l.clock.Since(at) > maxLateness }

// reserveBatch reserves slots for the waiting callers.
func (l *Limiter) reserveBatch(ctx context.Context, provider string, limit api.RateLimit, waiting int, horizon time.Duration) ([]time.Time, error) {
	interval := Interval(limit)
	n := max(1, min(waiting, int(reserveWindow/interval)))
	var first, local time.Time
	var reserved bool
	err := l.store.Write(ctx, func(tx store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		local = l.clock.Now()
		if now.IsZero() {
			now = local
		}
		at, ok, err := tx.Reserve(provider, now, interval, max(1, limit.Burst), n, horizon)
		// All replicas use the clock of the database.
		first, reserved = local.Add(at.Sub(now)), ok
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reserve slot: %w", err)
	}
	if !reserved {
		return nil, NoSlot{Until: first}
	}
	slots := make([]time.Time, n)
	for i := range slots {
		slots[i] = first.Add(time.Duration(i) * interval)
		if slots[i].Before(local) {
			slots[i] = local
		}
	}
	return slots, nil
}

// Interval is the time between two slots.
func Interval(limit api.RateLimit) time.Duration {
	return time.Duration(math.Ceil(float64(time.Second) / (limit.PerSecond * rateMargin)))
}

func (l *Limiter) queue(provider string) *waitQueue {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queues[provider]
	if q == nil {
		q = &waitQueue{}
		l.queues[provider] = q
	}
	return q
}

func (q *waitQueue) count(n int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting += n
	return q.waiting
}
