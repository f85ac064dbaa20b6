package lifecycle

import (
	"context"
	"errors"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// finishTimeout bounds the transaction that writes a result. The result counts until
// another run takes the step over.
const finishTimeout = 30 * time.Second

// finish writes the result of a call and what follows from it.
func (e *Engine) finish(ctx context.Context, s step, r provider.Result) error {
	return e.endRun(ctx, s, func(t *txn, before store.Grant) store.Grant {
		return ApplyResult(before, CallResult{Now: t.now, Op: s.call.Op, MaybeGranted: s.maybeGranted, NodeScoped: s.nodeScoped, Result: r, Retry: s.retry, Random: e.Random()})
	})
}

// cancelStep ends a started step without a call; it is due again after wait.
func (e *Engine) cancelStep(ctx context.Context, s step, wait time.Duration) error {
	return e.endRun(ctx, s, func(t *txn, g store.Grant) store.Grant {
		g.MaybeGranted, g.Due = s.maybeGranted, s.due
		if wait > 0 {
			g = scheduleAt(g, t.now.Add(wait))
		}
		return g
	})
}

// endRun ends the run of a step with the grant that next returns. It writes even
// while the process stops.
func (e *Engine) endRun(ctx context.Context, s step, next func(t *txn, before store.Grant) store.Grant) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	for {
		_, _, err := e.updateInBackground(ctx, s.application, func(t *txn) error {
			if s.ordinal >= len(t.grants) || t.grants[s.ordinal].RunID != s.runID {
				return errStaleStep
			}
			before := t.grants[s.ordinal]
			if err := t.endStep(before, next(t, before)); err != nil || t.grants[s.ordinal].State != api.Revoked || len(s.leaks) == 0 {
				return err
			}
			return t.RetryLeaks(s.leaks, before.Provider, t.now)
		})
		// Without its result, the call would be repeated.
		if !store.LockTimeout(err) || ctx.Err() != nil {
			return err
		}
	}
}

// endStep ends a step: it removes the id of its run and makes the next step due.
func (t *txn) endStep(before, g store.Grant) error {
	g.RunID = ""
	// A grant whose revocation was requested is not requested again; advance
	// revokes it.
	if t.app.RevokeRequested && g.State != api.Revoking && g.State != api.Leaked {
		g.Due, g.NextTry = time.Time{}, time.Time{}
	}
	t.writeGrant(before, g)
	return t.advance()
}

// failOverdue ends attempts of a provider whose breaker is open. It ends an attempt if both the
// attempt and the outage have lasted for retry.pollTimeoutSeconds. So a grant that only waits for
// the rate limit does not fail. Nor does any grant if a replica has granted or denied a permission of
// the provider in that time: that replica reaches the provider, although this one does not.
func (e *Engine) failOverdue(ctx context.Context, p api.Provider) error {
	began := e.Clock.Now().Add(-seconds(p.Retry.PollTimeoutSeconds))
	if down := e.Breaker.DownSince(p.Name); down.IsZero() || down.After(began) {
		return nil
	}
	overdue, err := e.Store.View(ctx).OverdueGrants(p.Name, began, maxSteps)
	if err != nil || len(overdue) == 0 {
		return err
	}
	if answered, err := e.Store.View(ctx).AnsweredSince(p.Name, began); err != nil || answered {
		return err
	}
	for _, o := range overdue {
		_, _, err := e.updateInBackground(ctx, o.Application, func(t *txn) error {
			if o.Ordinal >= len(t.grants) {
				return errUnchanged // the grants were replaced
			}
			before := t.grants[o.Ordinal]
			if t.app.RevokeRequested || before.RunID != "" || before.State != o.State || !before.Began.Equal(o.Began) {
				return errUnchanged
			}
			g := before
			g.State, g.Reason, g.Since, g.Due, g.NextTry = api.Failed, ReasonDecisionTimeout, t.now, time.Time{}, time.Time{}
			g.Message = "the provider could not be called within retry.pollTimeoutSeconds"
			return t.endStep(before, g)
		})
		if err != nil && !errors.Is(err, errUnchanged) {
			return err
		}
	}
	return nil
}
