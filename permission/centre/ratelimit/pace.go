// Package ratelimit keeps all replicas together below a provider's rate limit. The
// store holds, for each provider, the time of the next call: the generic cell
// rate algorithm. A call is given a moment and is made at that moment; one that
// is late asks for another, so calls that were held up never come in a bunch.
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
	// slack is how late a call may be for its moment, and margin how much
	// slower than the limit we go to make up for it: in any second there are
	// at most limit + burst calls, when 1.05 s of moments fall into it.
	slack  = 50 * time.Millisecond
	margin = 0.95

	// ahead bounds how much is reserved in one transaction.
	ahead = 250 * time.Millisecond
)

// Full is returned when the next moment is further off than one may wait.
type Full struct{ Until time.Time }

func (f Full) Error() string { return "no call is free before " + f.Until.Format(time.RFC3339) }

// Pacer hands out moments.
type Pacer struct {
	store *store.Store
	clock clock.Clock

	mu     sync.Mutex
	queues map[string]*line
}

// line is who waits for one provider's moments.
type line struct {
	// turn is held by the one who asks the store; others wait in order.
	turn    sync.Mutex
	free    []time.Time
	mu      sync.Mutex
	waiting int
}

// New makes a Pacer.
func New(s *store.Store, c clock.Clock) *Pacer {
	return &Pacer{store: s, clock: c, queues: map[string]*line{}}
}

// Next returns a moment to call the provider, now or within horizon. Full is
// returned when there is none.
func (p *Pacer) Next(ctx context.Context, provider string, limit api.RateLimit, horizon time.Duration) (time.Time, error) {
	q := p.line(provider)
	q.count(1)
	defer q.count(-1)
	q.turn.Lock()
	defer q.turn.Unlock()
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	for len(q.free) > 0 {
		at := q.free[0]
		q.free = q.free[1:]
		if !p.Late(at) {
			return at, nil
		}
	}
	moments, err := p.reserve(ctx, provider, limit, q.count(0), horizon)
	if err != nil {
		return time.Time{}, err
	}
	q.free = moments[1:]
	return moments[0], nil
}

// Late says whether a moment has gone by.
func (p *Pacer) Late(at time.Time) bool { return p.clock.Since(at) > slack }

// reserve takes moments for those who wait.
func (p *Pacer) reserve(ctx context.Context, provider string, limit api.RateLimit, waiting int, horizon time.Duration) ([]time.Time, error) {
	interval := Interval(limit)
	n := max(1, min(waiting, int(ahead/interval)))
	var first, local time.Time
	var reserved bool
	err := p.store.Write(ctx, func(tx store.Tx) error {
		now, err := tx.Now()
		if err != nil {
			return err
		}
		local = p.clock.Now()
		if now.IsZero() {
			now = local
		}
		at, ok, err := tx.Reserve(provider, now, interval, max(1, limit.Burst), n, horizon)
		// The database's clock is the one that all replicas go by.
		first, reserved = local.Add(at.Sub(now)), ok
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reserve a call: %w", err)
	}
	if !reserved {
		return nil, Full{Until: first}
	}
	moments := make([]time.Time, n)
	for i := range moments {
		moments[i] = first.Add(time.Duration(i) * interval)
		if moments[i].Before(local) {
			moments[i] = local
		}
	}
	return moments, nil
}

// Interval between two calls.
func Interval(limit api.RateLimit) time.Duration {
	return time.Duration(math.Ceil(float64(time.Second) / (limit.PerSecond * margin)))
}

func (p *Pacer) line(provider string) *line {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := p.queues[provider]
	if q == nil {
		q = &line{}
		p.queues[provider] = q
	}
	return q
}

func (q *line) count(n int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting += n
	return q.waiting
}
