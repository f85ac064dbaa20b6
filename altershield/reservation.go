package altershield

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// Reservation is the slot of one attempt in the rate limit. A caller that writes the
// intent of a call waits first, so that the intent has the time of the call.
type Reservation struct {
	limiter *limiter
	used    atomic.Bool
}

// Reserve waits for the rate limit. It returns an error at once if the wait would
// exceed the deadline of ctx.
func (c *Client) Reserve(ctx context.Context) (*Reservation, error) {
	if err := c.caller.limiter.wait(ctx); err != nil {
		return nil, throttled(ctx, "reserve", err)
	}
	return &Reservation{limiter: c.caller.limiter}, nil
}

// Context returns a context with the slot: the first attempt with it does not
// wait. A nil Reservation has no effect.
func (p *Reservation) Context(ctx context.Context) context.Context {
	if p == nil {
		return ctx
	}
	return context.WithValue(ctx, reservationKey{}, p)
}

// Cancel gives the slot to another call if no attempt used it.
func (p *Reservation) Cancel() {
	if p != nil && p.used.CompareAndSwap(false, true) {
		p.limiter.giveBack()
	}
}

type reservationKey struct{}

// limiter is the rate limit of a client. A slot that was not used is given to the
// next caller.
type limiter struct {
	*rate.Limiter

	mu     sync.Mutex
	unused int
}

// wait waits for a slot, unless ctx has a slot that is not used.
func (l *limiter) wait(ctx context.Context) error {
	if p, ok := ctx.Value(reservationKey{}).(*Reservation); ok && p.used.CompareAndSwap(false, true) {
		return nil
	}
	l.mu.Lock()
	if l.unused > 0 {
		l.unused--
		l.mu.Unlock()
		return nil
	}
	l.mu.Unlock()
	return l.Wait(ctx)
}

// giveBack adds a slot that was not used.
func (l *limiter) giveBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unused = min(l.unused+1, l.Burst())
}

// throttled returns the error of a wait for the rate limit.
func throttled(ctx context.Context, action string, err error) error {
	kind := KindThrottled
	if errors.Is(ctx.Err(), context.Canceled) {
		kind = KindCanceled
	}
	return &CallError{Action: action, Kind: kind, Err: err}
}

// IsThrottled reports whether the call was not made because of the rate limit. The
// server has not received it.
func IsThrottled(err error) bool {
	callErr, ok := errors.AsType[*CallError](err)
	return ok && callErr.Kind == KindThrottled
}
