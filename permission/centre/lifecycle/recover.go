package lifecycle

import (
	"context"
	"errors"
	"time"

	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// recoverInterval is how often stuck grants are looked for.
const recoverInterval = time.Second

// Recover creates new jobs for grants whose worker died and returns their
// number. It always waits for a claim to expire, because the call of the dead
// worker may still be in progress. after is how long a due grant may have no
// job.
func (e *Engine) Recover(ctx context.Context, after time.Duration) (int, error) {
	now := e.Clock.Now()
	stuck, err := e.Store.View(ctx).Stuck(now, now.Add(-after), 500)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, s := range stuck {
		_, _, err := e.update(ctx, s.Application, "", func(t *txn) error {
			before := t.grants[s.Ordinal]
			if before.Step != s.Step || before.ClaimID != s.ClaimID {
				return errUnchanged
			}
			n++
			g := before
			if g.Due.IsZero() {
				g.Due = t.now
			}
			return t.endStep(before, g)
		})
		if err != nil && !errors.Is(err, errUnchanged) && !errors.Is(err, store.ErrNotFound) {
			return n, err
		}
	}
	return n, nil
}

// RunRecovery runs Recover at once and then every recoverInterval until ctx
// ends.
func (e *Engine) RunRecovery(ctx context.Context) error {
	after := e.TakeoverAfter
	if !e.Store.Shared() {
		// No other replica uses this database: all earlier workers are dead.
		after = 0
	}
	for {
		e.recoverOnce(ctx, after)
		after = e.TakeoverAfter
		if e.sleep(ctx, e.Clock.Now().Add(recoverInterval)) != nil {
			return nil //nolint:nilerr // the context ended
		}
	}
}

func (e *Engine) recoverOnce(ctx context.Context, after time.Duration) {
	n, err := e.Recover(ctx, after)
	switch {
	case err != nil && ctx.Err() == nil:
		e.Log.Error("recover stuck grants", "error", err)
	case n > 0:
		e.Log.Info("recovered stuck grants", "grants", n)
	}
}
