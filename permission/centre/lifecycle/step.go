package lifecycle

import (
	"context"
	"errors"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/queue"
	"github.com/breakwater-dev/breakwater/permission/centre/ratelimit"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

const (
	// horizon is how long a job may wait for a slot. The step is not claimed
	// yet, so no claim delays recovery.
	horizon = 45 * time.Second
	// claimAhead is how long before its slot a step is claimed.
	claimAhead = 500 * time.Millisecond
	// maxCallDelay is how late a claimed call may start, finishMargin the time
	// for the transaction that ends the step. A claim lasts for claimAhead, both of
	// these and the timeout of the provider.
	maxCallDelay = 2 * time.Second
	finishMargin = 3 * time.Second
	// finishTimeout bounds the transaction that writes a result. The result
	// counts until another worker takes the step over.
	finishTimeout = 30 * time.Second
	// recheckInterval is the interval of checks for another pod's revocation.
	recheckInterval = time.Second
)

var (
	// errStaleStep: the job is not for the current step of its grant.
	errStaleStep = errors.New("stale step")
	// errStopping: the process stops; another replica runs the job.
	errStopping = errors.New("stopping")
)

// Handle runs one step of one grant.
func (e *Engine) Handle(ctx context.Context, job queue.Job) error {
	err := e.handle(ctx, job)
	if errors.Is(err, errStaleStep) || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if errors.Is(err, errStopping) {
		return queue.NotDue{}
	}
	return err
}

func (e *Engine) handle(ctx context.Context, job queue.Job) error {
	v := e.Store.View(ctx)
	app, err := v.Application(job.Application)
	if err != nil {
		return err
	}
	grants, err := v.Grants(job.Application)
	if err != nil {
		return err
	}
	g, err := current(grants, job)
	if err != nil {
		return err
	}
	if wait := g.Due.Sub(e.Clock.Now()); wait > 0 {
		return queue.NotDue{Wait: wait}
	}
	p, err := e.provider(v, g.Provider)
	if err != nil {
		return err
	}
	// A step without a call needs no slot.
	if d := Decide(input(app, g, p, store.Overlap{})); d.Call == "" {
		_, _, err := e.claim(ctx, job, p)
		return err
	}
	if wait := e.Breaker.OpenFor(p.Name); wait > 0 {
		return e.postpone(ctx, job, p, wait)
	}
	return e.callInSlot(ctx, job, p)
}

// callInSlot reserves a slot, claims the step and calls the provider. The
// client is built before the slot is reserved; otherwise jobs that wait for the
// client would call in a burst.
func (e *Engine) callInSlot(ctx context.Context, job queue.Job, p api.Provider) error {
	e.client(p) // cached; built again below only if the provider changed
	at, err := e.Limiter.Reserve(ctx, p.Name, p.RateLimit, horizon)
	var noSlot ratelimit.NoSlot
	if errors.As(err, &noSlot) {
		return e.postpone(ctx, job, p, noSlot.Until.Sub(e.Clock.Now()))
	} else if err != nil {
		return err
	}
	if err := e.sleep(ctx, at.Add(-claimAhead)); err != nil {
		return err
	}
	c, ready, err := e.claim(ctx, job, p)
	if err != nil || !ready {
		return err
	}
	client := e.client(p)
	if !e.awaitSlot(ctx, p, at, c) {
		return e.releaseClaim(ctx, job, c, 0)
	}
	var result provider.Result
	if !e.Breaker.Do(p.Name, func() bool {
		result = e.call(ctx, p, client, c)
		return result.Outcome != provider.Failed || result.Reason == provider.ReasonProviderThrottled
	}) {
		// Another job probes the provider.
		return e.releaseClaim(ctx, job, c, max(recheckInterval, e.Breaker.OpenFor(p.Name)))
	}
	return e.finish(ctx, job, c, result)
}

// awaitSlot waits for the slot and reserves another if it expired. It returns
// false if the call must not be made, because the claim may expire during the
// call.
func (e *Engine) awaitSlot(ctx context.Context, p api.Provider, at time.Time, c claimed) bool {
	for {
		if e.sleep(ctx, at) != nil {
			return false
		}
		if e.Clock.Now().After(c.callBy) {
			return false
		}
		if !e.Limiter.Expired(at) {
			return true
		}
		var err error
		if at, err = e.Limiter.Reserve(ctx, p.Name, p.RateLimit, c.callBy.Sub(e.Clock.Now())); err != nil {
			return false
		}
	}
}

// call calls the provider and records the metrics.
func (e *Engine) call(ctx context.Context, p api.Provider, client provider.Client, c claimed) provider.Result {
	began := e.Clock.Now()
	r := client.Call(ctx, c.call)
	e.Metrics.Call(p.Name, c.call.Op, r, e.Clock.Since(began))
	e.Log.Info("provider called", "provider", p.Name, "op", c.call.Op, "application", c.call.Application, "key", c.call.Key,
		"outcome", r.Outcome, "reason", r.Reason)
	return r
}

// client returns the client of a provider.
func (e *Engine) client(p api.Provider) provider.Client {
	client, err := e.Clients.New(p)
	if err != nil {
		return misconfiguredClient{err}
	}
	return client
}

// misconfiguredClient is the client of a provider with an invalid
// configuration.
type misconfiguredClient struct{ err error }

// Call implements provider.Client.
func (m misconfiguredClient) Call(context.Context, provider.Call) provider.Result {
	return provider.Result{Outcome: provider.Failed, Reason: provider.ReasonProviderMisconfigured, Message: m.err.Error()}
}

func (e *Engine) sleep(ctx context.Context, until time.Time) error {
	wait := until.Sub(e.Clock.Now())
	if wait <= 0 {
		return ctx.Err()
	}
	timer := e.Clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-e.Stopping:
		return errStopping
	case <-ctx.Done():
		return ctx.Err()
	}
}
