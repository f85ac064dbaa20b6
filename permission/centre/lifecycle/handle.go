package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/queue"
	"github.com/breakwater-dev/breakwater/permission/centre/ratelimit"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

const (
	// horizon is how long a job may wait for a moment to call; it is not yet
	// at the call then, so nobody waits for its lease.
	horizon = 45 * time.Second
	// claimAhead is how long before its moment a call is claimed.
	claimAhead = 500 * time.Millisecond
	// callWithin is for how late a claimed call may be, and afterCall for the
	// transaction that ends it. Both, and the provider's timeout, are how long
	// others wait for a worker that died.
	callWithin = 2 * time.Second
	afterCall  = 3 * time.Second
	// writeWithin is for how long a call's result is tried to be written: it
	// counts for as long as nobody else took the step over.
	writeWithin = 30 * time.Second
	// shortWait is between two looks at what another pod's grant waits for.
	shortWait = time.Second
)

var (
	// errStale: the job is of a step that is over.
	errStale = errors.New("the step is over")
	// errStopping: the process stops, and the job is another's.
	errStopping = errors.New("stopping")
)

// Handle does one step of one grant.
func (e *Engine) Handle(ctx context.Context, job queue.Job) error {
	err := e.handle(ctx, job)
	if errors.Is(err, errStale) || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if errors.Is(err, errStopping) {
		return queue.Later{}
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
		return queue.Later{In: wait}
	}
	p, err := e.provider(v, g.Provider)
	if err != nil {
		return err
	}
	// What needs no call needs no moment of the provider's either.
	if d := Decide(input(app, g, p, store.Others{})); d.Call == "" {
		_, _, err := e.claim(ctx, job, p)
		return err
	}
	if rest := e.Breaker.Rest(p.Name); rest > 0 {
		return e.putOff(ctx, job, p, rest)
	}
	return e.callAt(ctx, job, p)
}

// callAt waits for a moment to call, claims the step, and calls. What the caller
// takes to be made goes by before there is a moment: nothing may come between
// that and the call, or those who wait for the caller leave together.
func (e *Engine) callAt(ctx context.Context, job queue.Job, p api.Provider) error {
	e.caller(p) // it is kept, and made anew when the provider has changed by then
	at, err := e.Pacer.Next(ctx, p.Name, p.RateLimit, horizon)
	var full ratelimit.Full
	if errors.As(err, &full) {
		return e.putOff(ctx, job, p, full.Until.Sub(e.Clock.Now()))
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
	caller := e.caller(p)
	if !e.await(ctx, p, at, c) {
		return e.giveBack(ctx, job, c, 0)
	}
	var result provider.Result
	if !e.Breaker.Do(p.Name, func() bool {
		result = e.call(ctx, p, caller, c)
		return result.Outcome != provider.Failed || result.Reason == provider.ReasonThrottled
	}) {
		// Another tries whether the provider is back.
		return e.giveBack(ctx, job, c, max(shortWait, e.Breaker.Rest(p.Name)))
	}
	return e.finish(ctx, job, c, result)
}

// await waits for the moment; when that went by it asks for another. It is
// false when the call must not be made, for others may soon think us dead.
func (e *Engine) await(ctx context.Context, p api.Provider, at time.Time, c claimed) bool {
	for {
		if e.sleep(ctx, at) != nil {
			return false
		}
		if e.Clock.Now().After(c.callBy) {
			return false
		}
		if !e.Pacer.Late(at) {
			return true
		}
		var err error
		if at, err = e.Pacer.Next(ctx, p.Name, p.RateLimit, c.callBy.Sub(e.Clock.Now())); err != nil {
			return false
		}
	}
}

// claimed is a step whose intent is stored.
type claimed struct {
	call   provider.Call
	lease  string
	callBy time.Time
	// due is when it was due: its place, when the call is not made.
	due    time.Time
	before bool
	retry  api.Retry
}

// claim stores the intent to call, or what is to be done without a call.
func (e *Engine) claim(ctx context.Context, job queue.Job, p api.Provider) (claimed, bool, error) {
	var c claimed
	ready := false
	_, _, err := e.change(ctx, job.Application, "", func(t *txn) error {
		g, err := current(t.grants, job)
		if err != nil {
			return err
		}
		if g.Lease != "" {
			return errStale
		}
		others, err := t.OthersAt(g, t.app.Request.PodUID, addresses(t.app.Request, p))
		if err != nil {
			return err
		}
		before, d := g, Decide(input(t.app, g, p, others))
		if d.State != "" && d.State != g.State {
			g.State, g.Since = d.State, t.now
		}
		if d.Reason != "" {
			g.Reason, g.Message = d.Reason, d.Message
		}
		g.Due, g.NextTry = time.Time{}, time.Time{}
		switch {
		case d.Wait:
			wait := shortWait
			if d.State == api.Leaked {
				g.Failures++
				wait = Backoff(p.Retry, g.Failures, e.Random())
			}
			g.Due = t.now.Add(wait)
			g.NextTry = g.Due
			if err := t.enqueue(&g); err != nil {
				return err
			}
		case d.Call != "":
			if g.CallKey == "" {
				g.CallKey = fmt.Sprintf("%s-%d-%d", g.Application, g.Ordinal, g.Keys)
			}
			callBy := t.now.Add(claimAhead + callWithin)
			c = claimed{lease: leaseName(), before: g.Touched, retry: p.Retry, callBy: callBy, due: before.Due,
				call: provider.Call{Op: d.Call, Key: g.CallKey, Application: g.Application, Pod: t.app.Request,
					IPs: addresses(t.app.Request, p), Parameters: g.Parameters, Kept: g.Kept}}
			if d.Call == provider.Revoke {
				c.call.Key += "-revoke"
			}
			g.Touched, g.Lease, g.LeaseUntil, ready = true, c.lease, callBy.Add(provider.Timeout(p)+afterCall), true
		}
		return t.put(before, g)
	})
	return c, ready && err == nil, err
}

func input(app store.Application, g store.Grant, p api.Provider, o store.Others) Input {
	return Input{State: g.State, Going: app.Going, Touched: g.Touched, Pending: g.Pending, CanRevoke: p.CanRevoke,
		NodeScoped: p.NodeScoped, OtherGoing: o.Going, OtherHolds: o.Held}
}

// current finds a job's grant, if the job is of its current step.
func current(grants []store.Grant, job queue.Job) (store.Grant, error) {
	if job.Ordinal >= len(grants) || grants[job.Ordinal].Step != job.Step {
		return store.Grant{}, errStale
	}
	return grants[job.Ordinal], nil
}

// call calls the provider. The call ends when its lease does, whatever happens.
func (e *Engine) call(ctx context.Context, p api.Provider, caller provider.Caller, c claimed) provider.Result {
	began := e.Clock.Now()
	r := caller.Call(ctx, c.call)
	e.Metrics.Call(p.Name, c.call.Op, r, e.Clock.Since(began))
	e.Log.Info("provider called", "provider", p.Name, "op", c.call.Op, "application", c.call.Application, "key", c.call.Key,
		"outcome", r.Outcome, "reason", r.Reason)
	return r
}

// caller returns the provider's caller, which may have to be compiled.
func (e *Engine) caller(p api.Provider) provider.Caller {
	caller, err := e.Callers.New(p)
	if err != nil {
		return misconfigured{err}
	}
	return caller
}

// misconfigured is the caller of a provider that cannot be called.
type misconfigured struct{ err error }

// Call implements provider.Caller.
func (m misconfigured) Call(context.Context, provider.Call) provider.Result {
	return provider.Result{Outcome: provider.Failed, Reason: provider.ReasonConfiguration, Message: m.err.Error()}
}

// finish writes a call's result and what follows from it.
func (e *Engine) finish(ctx context.Context, job queue.Job, c claimed, r provider.Result) error {
	// The result of a call that was made is written even while we stop.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeWithin)
	defer cancel()
	_, _, err := e.change(ctx, job.Application, "", func(t *txn) error {
		before := t.grants[job.Ordinal]
		if before.Lease != c.lease {
			return errStale
		}
		g := Judge(before, Outcome{Now: t.now, Op: c.call.Op, Before: c.before, Result: r, Retry: c.retry, Random: e.Random()})
		return t.end(before, g)
	})
	return err
}

// end frees a grant from its worker; its next step has its job.
func (t *txn) end(before, g store.Grant) error {
	g.Lease, g.LeaseUntil = "", time.Time{}
	// What is going now is not asked for again: its revocation comes next.
	if t.app.Going && g.State != api.Revoking && g.State != api.Leaked {
		g.Due, g.NextTry = time.Time{}, time.Time{}
	}
	if !g.Due.IsZero() {
		if err := t.enqueue(&g); err != nil {
			return err
		}
	} else {
		// No job is left: what comes late must not find its step.
		g.Step++
	}
	if err := t.put(before, g); err != nil {
		return err
	}
	return t.advance()
}

// giveBack ends a claimed step whose call was not made; it is due again after wait.
func (e *Engine) giveBack(ctx context.Context, job queue.Job, c claimed, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeWithin)
	defer cancel()
	_, _, err := e.change(ctx, job.Application, "", func(t *txn) error {
		before := t.grants[job.Ordinal]
		if before.Lease != c.lease {
			return errStale
		}
		g := before
		g.Touched, g.Due = c.before, c.due
		if wait > 0 {
			g.Due = t.now.Add(wait)
			g.NextTry = g.Due
		}
		return t.end(before, g)
	})
	return err
}

// putOff makes a step due later, when the provider rests or has no room; an
// attempt that is put off for too long has failed.
func (e *Engine) putOff(ctx context.Context, job queue.Job, p api.Provider, wait time.Duration) error {
	_, _, err := e.change(ctx, job.Application, "", func(t *txn) error {
		before, err := current(t.grants, job)
		if err != nil {
			return err
		}
		g := before
		if !t.app.Going && t.now.Sub(g.Began) > seconds(p.Retry.PollTimeoutSeconds) {
			g.State, g.Reason, g.Since, g.Due = api.Failed, ReasonGaveUp, t.now, time.Time{}
			g.Message = "the provider could not be called in time"
			return t.end(before, g)
		}
		g.Due = t.now.Add(wait + time.Duration(e.Random()*float64(wait)/4))
		g.NextTry = g.Due
		return t.end(before, g)
	})
	return err
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
