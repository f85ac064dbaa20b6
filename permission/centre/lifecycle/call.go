package lifecycle

import (
	"context"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
)

// run makes the call of a started step in its slot, and ends the step. If it makes no
// call, the step becomes due again. startCtx ends when no new call may begin, callCtx
// when running calls are interrupted.
func (e *Engine) run(startCtx, callCtx context.Context, p api.Provider, s step, pd *providerDispatch) error {
	client := e.client(p)
	if !e.awaitSlot(startCtx, p, s, pd) {
		return e.cancelStep(callCtx, s, 0)
	}
	result, called := e.callWithBreaker(callCtx, p, client, s, pd)
	if !called {
		// Another call probes the provider.
		return e.cancelStep(callCtx, s, max(recheckInterval, e.Breaker.OpenFor(p.Name)))
	}
	if callCtx.Err() != nil && result.Outcome == provider.Failed {
		// The call was interrupted, so its result is unknown. It is retried when the run
		// expires.
		return nil
	}
	return e.finish(callCtx, s, result)
}

// callWithBreaker calls the provider unless the breaker is open, and then counts the call as ended.
func (e *Engine) callWithBreaker(ctx context.Context, p api.Provider, client provider.Client, s step, pd *providerDispatch) (result provider.Result, called bool) {
	defer pd.release(pd.calls, 1)
	called = e.Breaker.Do(p.Name, func() bool {
		began := e.Clock.Now()
		result = e.call(ctx, p, client, s)
		pd.observe(e.Clock.Since(began))
		return result.Outcome != provider.Failed || result.Reason == provider.ReasonProviderThrottled
	})
	return result, called
}

// awaitSlot waits for the slot and until a call is allowed, and reserves another slot if it expired. It
// returns false, and counts no call, if the call must not be made, because the run may expire during
// the call.
func (e *Engine) awaitSlot(ctx context.Context, p api.Provider, s step, pd *providerDispatch) bool {
	for at := s.slot; ; {
		if e.sleep(ctx, at) != nil || !e.awaitFreeCall(ctx, pd, s.callBy) {
			return false
		}
		if !e.Limiter.Expired(at) {
			return true
		}
		pd.release(pd.calls, 1)
		var err error
		if at, err = e.Limiter.Reserve(ctx, p.Name, p.RateLimit, s.callBy.Sub(e.Clock.Now())); err != nil {
			return false
		}
	}
}

// awaitFreeCall waits, at most until a time, until fewer calls than the limit are in progress, and counts its own.
func (e *Engine) awaitFreeCall(ctx context.Context, pd *providerDispatch, until time.Time) bool {
	left := until.Sub(e.Clock.Now())
	if left < 0 {
		return false
	}
	select {
	case pd.calls <- struct{}{}:
		return true
	default:
	}
	timer := e.Clock.NewTimer(left)
	defer timer.Stop()
	select {
	case pd.calls <- struct{}{}:
		return true
	case <-timer.C():
		return false
	case <-ctx.Done():
		return false
	}
}

// call calls the provider and records the metrics.
func (e *Engine) call(ctx context.Context, p api.Provider, client provider.Client, s step) provider.Result {
	began := e.Clock.Now()
	r := client.Call(ctx, s.call)
	e.Metrics.Call(p.Name, s.call.Op, r, e.Clock.Since(began))
	e.Log.Info("provider called", "provider", p.Name, "op", s.call.Op, "application", s.call.Application, "key", s.call.Key,
		"outcome", r.Outcome, "reason", r.Reason)
	return r
}

// client returns the client of a provider.
func (e *Engine) client(p api.Provider) provider.Client {
	client, err := e.Clients.Client(p)
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

// sleep returns at a time, or with an error when ctx ends.
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
	case <-ctx.Done():
		return ctx.Err()
	}
}
