package lifecycle

import (
	"context"
	"errors"
	"time"

	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// recoverEvery is how soon what a worker left behind is found.
const recoverEvery = time.Second

// Recover gives a new job to what dead workers left behind, and returns how
// much that was. A lease is waited for always: the dead worker's call may still
// be on its way.
func (e *Engine) Recover(ctx context.Context, patience time.Duration) (int, error) {
	now := e.Clock.Now()
	stuck, err := e.Store.View(ctx).Stuck(now, now.Add(-patience), 500)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, s := range stuck {
		_, _, err := e.change(ctx, s.Application, "", func(t *txn) error {
			before := t.grants[s.Ordinal]
			if before.Step != s.Step || before.Lease != s.Lease {
				return errNothing
			}
			n++
			g := before
			if g.Due.IsZero() {
				g.Due = t.now
			}
			return t.end(before, g)
		})
		if err != nil && !errors.Is(err, errNothing) && !errors.Is(err, store.ErrNotFound) {
			return n, err
		}
	}
	return n, nil
}

// RunRecovery recovers at once and then every few seconds, until ctx ends.
func (e *Engine) RunRecovery(ctx context.Context) error {
	patience := e.Patience
	if !e.Store.Shared() {
		// Nobody else has this database: who was at work before is dead.
		patience = 0
	}
	for {
		e.recoverOnce(ctx, patience)
		patience = e.Patience
		if e.sleep(ctx, e.Clock.Now().Add(recoverEvery)) != nil {
			return nil //nolint:nilerr // it ends because it is told to
		}
	}
}

func (e *Engine) recoverOnce(ctx context.Context, patience time.Duration) {
	n, err := e.Recover(ctx, patience)
	switch {
	case err != nil && ctx.Err() == nil:
		e.Log.Error("recover what was left behind", "error", err)
	case n > 0:
		e.Log.Info("recovered what was left behind", "grants", n)
	}
}
