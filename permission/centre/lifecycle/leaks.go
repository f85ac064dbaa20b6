package lifecycle

import (
	"context"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// RetryLeaks has what a provider could not take back before taken back.
func (e *Engine) RetryLeaks(ctx context.Context, provider string) error {
	for {
		leaked, err := e.Store.View(ctx).LeakedOf(provider, 100)
		if err != nil || len(leaked) == 0 {
			return err
		}
		for _, l := range leaked {
			if _, _, err := e.change(ctx, l.Application, "", func(t *txn) error {
				before := t.grants[l.Ordinal]
				g := before
				if g.State != api.Leaked || !g.Due.IsZero() || g.Lease != "" {
					return nil
				}
				g.Due = t.now
				if err := t.enqueue(&g); err != nil {
					return err
				}
				return t.put(before, g)
			}); err != nil {
				return err
			}
		}
	}
}
