package lifecycle

import (
	"context"
	"errors"
	"slices"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// living are the states of an application that is not going.
var living = []api.State{api.Requested, api.Applying, api.Granted, api.Denied, api.Failed}

// Revoke takes an application back; it says whether it was not going before.
func (e *Engine) Revoke(ctx context.Context, id, who string) (store.Application, []store.Grant, bool, error) {
	begun := false
	app, grants, err := e.change(ctx, id, who, func(t *txn) error {
		if t.app.Going {
			return errNothing
		}
		t.app.Going, begun = true, true
		return t.advance()
	})
	if errors.Is(err, errNothing) {
		app, grants, _, err = e.load(ctx, id, AskedSame)
	}
	return app, grants, begun, err
}

// LetGo takes an application back whose pod did not wait for that: what is not
// taken back yet is a leak, and is tried on.
func (e *Engine) LetGo(ctx context.Context, id, who string) error {
	_, _, err := e.change(ctx, id, who, func(t *txn) error {
		changed := !t.app.Going
		if changed {
			t.app.Going = true
			if err := t.advance(); err != nil {
				return err
			}
		}
		for _, before := range t.grants {
			if before.State != api.Revoking {
				continue
			}
			g := before
			g.State, g.Reason, g.Since = api.Leaked, ReasonLetGo, t.now
			g.Message = "its pod was let go before it was taken back; that is tried on"
			if err := t.put(before, g); err != nil {
				return err
			}
			changed = true
		}
		if !changed {
			return errNothing
		}
		return nil
	})
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

// RevokePod takes back all applications of a pod but those for exactly the
// addresses to keep, and returns their ids, those included that were going before.
func (e *Engine) RevokePod(ctx context.Context, r api.RevokeRequest, who string) ([]string, error) {
	keep := slices.Compact(slices.Sorted(slices.Values(r.KeepIPs)))
	page := store.Page{Limit: 100}
	var ids []string
	for {
		apps, err := e.Store.View(ctx).Applications(store.Filter{Cluster: r.Cluster, PodUID: r.PodUID}, page)
		if err != nil {
			return ids, err
		}
		for _, a := range apps {
			page.After = a.ID
			if len(keep) > 0 && slices.Equal(keep, a.Request.PodIPs) {
				continue
			}
			if r.LetGo {
				err = e.LetGo(ctx, a.ID, who)
			} else {
				_, _, _, err = e.Revoke(ctx, a.ID, who)
			}
			if err != nil {
				return ids, err
			}
			ids = append(ids, a.ID)
		}
		if len(apps) < page.Limit {
			return ids, nil
		}
	}
}

// Reset begins a new attempt of what was denied or failed.
func (e *Engine) Reset(ctx context.Context, id, who string) (store.Application, []store.Grant, Asked, error) {
	return e.askAgain(ctx, id, who, false)
}
