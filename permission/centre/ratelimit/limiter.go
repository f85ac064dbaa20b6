// Package ratelimit enforces the rate limit of a provider across all replicas.
// The store holds the time of the next call for each provider: the generic cell
// rate algorithm. A call reserves a slot, which is a time, and is made at that
// time. A call that is late reserves another slot, so delayed calls never burst.
package ratelimit

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

const (
	// slotLead is the time from a reservation to its first slot, in which the transaction
	// of the reservation must end. If the transaction takes longer, the lead doubles.
	slotLead = 30 * time.Millisecond

	// maxLateness is how late a call may use its slot. The way to the provider may take
	// 30 ms longer for one request than for another. So the calls of up to 1.05 s of
	// slots may arrive within one second. rateMargin lowers the rate to compensate: no
	// second has more than limit + burst calls.
	maxLateness = 20 * time.Millisecond
	rateMargin  = 0.95

	// reserveWindow bounds the slots that are reserved in one transaction.
	reserveWindow = 250 * time.Millisecond

	// maxLead is how far ahead a slot may be reserved. Package lifecycle needs half of it: it starts a
	// step at most 0.5 s before its slot, and the call may begin in a later slot, up to 2 s after this one.
	maxLead = 5 * time.Second
)

// NoSlot is returned if Next, the next slot, is beyond the horizon.
type NoSlot struct{ Next time.Time }

func (n NoSlot) Error() string { return "no slot before " + n.Next.Format(time.RFC3339) }

// Limiter reserves slots.
type Limiter struct {
	store *store.Store
	clock clock.Clock
	log   *slog.Logger

	mu     sync.Mutex
	queues map[string]*waitQueue
}

// waitQueue is the queue of callers that wait for slots of one provider.
type waitQueue struct {
	// leader is locked by the caller that reserves slots for all waiting callers.
	leader  sync.Mutex
	slots   []time.Time
	mu      sync.Mutex
	waiting int
}

// New creates a Limiter.
func New(s *store.Store, c clock.Clock, log *slog.Logger) *Limiter {
	return &Limiter{store: s, clock: c, log: log, queues: map[string]*waitQueue{}}
}

// Reserve returns a slot for a call to the provider within horizon, or NoSlot. A horizon above
// maxLead is maxLead.
func (l *Limiter) Reserve(ctx context.Context, provider string, limit api.RateLimit, horizon time.Duration) (time.Time, error) {
	horizon = min(horizon, maxLead)
	q := l.queue(provider)
	q.add(1)
	defer q.add(-1)
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
	for lead := slotLead; ; lead *= 2 {
		slots, err := l.reserveBatch(ctx, provider, limit, q.length(), lead, horizon)
		if err != nil {
			return time.Time{}, err
		}
		if !l.Expired(slots[0]) {
			q.slots = slots[1:]
			return slots[0], nil
		}
	}
}

// bound limits the time of the next call to latest, and stores latest if the stored time was later. Unless
// the clock was set back, no reserved slot is later than latest, so no slot is used twice.
func (l *Limiter) bound(tx store.Tx, provider string, next, latest time.Time) (time.Time, error) {
	if !next.After(latest) {
		return next, nil
	}
	l.log.Warn("the next call to a provider was too far ahead, because the clock was set back or the rate limit was raised; it is made earlier",
		"provider", provider, "was", next, "next", latest)
	return latest, tx.SetNextCall(provider, latest)
}

// Begin returns the next slots of a provider and locks them until the transaction
// ends.
func (l *Limiter) Begin(tx store.Tx, provider string, limit api.RateLimit) (*Slots, error) {
	return l.begin(tx, provider, limit, slotLead)
}

func (l *Limiter) begin(tx store.Tx, provider string, limit api.RateLimit, lead time.Duration) (*Slots, error) {
	next, err := tx.LockNextCall(provider)
	if err != nil {
		return nil, err
	}
	now, err := tx.Now()
	if err != nil {
		return nil, err
	}
	local := l.clock.Now()
	if now.IsZero() {
		now = local
	}
	// All replicas use the clock of the database.
	ahead := now.Sub(local)
	interval := Interval(limit)
	if next, err = l.bound(tx, provider, next, now.Add(maxLead+interval)); err != nil {
		return nil, err
	}
	earliest := now.Add(lead)
	if first := earliest.Add(-time.Duration(max(1, limit.Burst)-1) * interval); first.After(next) {
		next = first
	}
	return NewSlots(earliest.Add(-ahead), next.Add(-ahead), interval, func(next time.Time) error { return tx.SetNextCall(provider, next.Add(ahead)) }), nil
}

// Expired reports whether a slot is too far in the past to be used.
func (l *Limiter) Expired(at time.Time) bool { return l.clock.Since(at) > maxLateness }

// reserveBatch reserves slots for the waiting callers, the first one after lead.
func (l *Limiter) reserveBatch(ctx context.Context, provider string, limit api.RateLimit, waiting int, lead, horizon time.Duration) ([]time.Time, error) {
	var reserved []time.Time
	var next time.Time
	err := l.store.WriteInBackground(ctx, func(tx store.Tx) error {
		reserved = nil
		slots, err := l.begin(tx, provider, limit, lead)
		if err != nil {
			return err
		}
		for range max(1, min(waiting, int(reserveWindow/Interval(limit)))) {
			if next = slots.Next(); next.Sub(l.clock.Now()) > horizon {
				break
			}
			slots.Use()
			reserved = append(reserved, next)
		}
		return slots.Save()
	})
	if err != nil {
		return nil, fmt.Errorf("reserve slot: %w", err)
	}
	if len(reserved) == 0 {
		return nil, NoSlot{Next: next}
	}
	return reserved, nil
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

// add adds n waiting callers.
func (q *waitQueue) add(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting += n
}

// length returns the number of waiting callers.
func (q *waitQueue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}
