package lifecycle

import (
	"context"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/queue"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// finish writes the result of a call and what follows from it.
func (e *Engine) finish(ctx context.Context, job queue.Job, c claimed, r provider.Result) error {
	return e.endClaim(ctx, job, c, func(t *txn, before store.Grant) store.Grant {
		return ApplyResult(before, CallResult{Now: t.now, Op: c.call.Op, MaybeGranted: c.maybeGranted, Result: r, Retry: c.retry, Random: e.Random()})
	})
}

// releaseClaim ends a claimed step without a call; it is due again after wait.
func (e *Engine) releaseClaim(ctx context.Context, job queue.Job, c claimed, wait time.Duration) error {
	return e.endClaim(ctx, job, c, func(t *txn, g store.Grant) store.Grant {
		g.MaybeGranted, g.Due = c.maybeGranted, c.due
		if wait > 0 {
			g.Due = t.now.Add(wait)
			g.NextTry = g.Due
		}
		return g
	})
}

// endClaim ends a claimed step with the grant that next returns. It writes even
// while the process stops.
func (e *Engine) endClaim(ctx context.Context, job queue.Job, c claimed, next func(t *txn, before store.Grant) store.Grant) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	_, _, err := e.update(ctx, job.Application, "", func(t *txn) error {
		before := t.grants[job.Ordinal]
		if before.ClaimID != c.id {
			return errStaleStep
		}
		return t.endStep(before, next(t, before))
	})
	return err
}

// endStep ends a step: it removes the claim and enqueues the next step.
func (t *txn) endStep(before, g store.Grant) error {
	g.ClaimID, g.ClaimedUntil = "", time.Time{}
	// A grant whose revocation was requested is not requested again; advance
	// revokes it.
	if t.app.RevokeRequested && g.State != api.Revoking && g.State != api.Leaked {
		g.Due, g.NextTry = time.Time{}, time.Time{}
	}
	if !g.Due.IsZero() {
		if err := t.enqueue(&g); err != nil {
			return err
		}
	} else {
		// No job remains; late jobs must be stale.
		g.Step++
	}
	if err := t.writeGrant(before, g); err != nil {
		return err
	}
	return t.advance()
}

// postpone delays a step if the breaker is open or no slot is free. An attempt
// fails when it was postponed for retry.pollTimeoutSeconds.
func (e *Engine) postpone(ctx context.Context, job queue.Job, p api.Provider, wait time.Duration) error {
	_, _, err := e.update(ctx, job.Application, "", func(t *txn) error {
		before, err := current(t.grants, job)
		if err != nil {
			return err
		}
		if before.ClaimID != "" {
			return errStaleStep // another worker runs the same job and is calling
		}
		g := before
		if !t.app.RevokeRequested && t.now.Sub(g.Began) > seconds(p.Retry.PollTimeoutSeconds) {
			g.State, g.Reason, g.Since, g.Due = api.Failed, ReasonDecisionTimeout, t.now, time.Time{}
			g.Message = "the provider could not be called within retry.pollTimeoutSeconds"
			return t.endStep(before, g)
		}
		g.Due = t.now.Add(wait + time.Duration(e.Random()*float64(wait)/4))
		g.NextTry = g.Due
		return t.endStep(before, g)
	})
	return err
}
