package altershield

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// Admission is the place of one attempt in the rate limit. A caller that records the
// intent of a call waits first, so that the intent has the time of the call.
type Admission struct {
	limiter *limiter
	used    atomic.Bool
}

// Admit waits for the rate limit. It returns an error at once if the wait would exceed
// the deadline of ctx.
func (c *Client) Admit(ctx context.Context) (*Admission, error) {
	if err := c.caller.limiter.wait(ctx); err != nil {
		return nil, throttled(ctx, "admit", err)
	}
	return &Admission{limiter: c.caller.limiter}, nil
}

// Context returns a context with the admission: the first attempt with it does not
// wait. A nil Admission admits nothing.
func (a *Admission) Context(ctx context.Context) context.Context {
	if a == nil {
		return ctx
	}
	return context.WithValue(ctx, admissionKey{}, a)
}

// Release returns the place if no attempt used it.
func (a *Admission) Release() {
	if a != nil && a.used.CompareAndSwap(false, true) {
		a.limiter.release()
	}
}

type admissionKey struct{}

// limiter is the rate limit of a client. A place that was not used is given to the
// next caller.
type limiter struct {
	*rate.Limiter

	mu     sync.Mutex
	unused int
}

// wait waits for a place, unless ctx has an admission that is not used.
func (l *limiter) wait(ctx context.Context) error {
	if a, ok := ctx.Value(admissionKey{}).(*Admission); ok && a.used.CompareAndSwap(false, true) {
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

func (l *limiter) release() {
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
	return &TransportError{Action: action, Kind: kind, Err: err}
}

// IsThrottled reports whether the call was not made because of the rate limit. The
// server has not received it.
func IsThrottled(err error) bool {
	var transport *TransportError
	return errors.As(err, &transport) && transport.Kind == KindThrottled
}
