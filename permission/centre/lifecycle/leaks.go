package lifecycle

import (
	"context"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// ScheduleLeaks makes the leaked grants that have no scheduled retry due: those of a provider that
// could not revoke before.
func (e *Engine) ScheduleLeaks(ctx context.Context, provider string) error {
	for {
		leaked, err := e.Store.View(ctx).UnscheduledLeaks(provider, 100)
		if err != nil || len(leaked) == 0 {
			return err
		}
		for _, l := range leaked {
			if _, _, err := e.update(ctx, l.Application, "", func(t *txn) error {
				if l.Ordinal >= len(t.grants) {
					return nil // the grants were replaced
				}
				before := t.grants[l.Ordinal]
				g := before
				if g.State != api.Leaked || !g.Due.IsZero() || g.RunID != "" {
					return nil
				}
				g.Due = t.now
				t.writeGrant(before, g)
				return nil
			}); err != nil {
				return err
			}
		}
	}
}
