package work

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

// RevokePod takes back all applications of a pod but those for exactly the
// addresses keep, and returns their ids, those included that were going before.
func (e *Engine) RevokePod(ctx context.Context, cluster, podUID string, keep []string, who string) ([]string, error) {
	keep = slices.Compact(slices.Sorted(slices.Values(keep)))
	page := store.Page{Limit: 100}
	var ids []string
	for {
		apps, err := e.Store.View(ctx).Applications(store.Filter{Cluster: cluster, PodUID: podUID}, page)
		if err != nil {
			return ids, err
		}
		for _, a := range apps {
			page.After = a.ID
			if len(keep) > 0 && slices.Equal(keep, a.Request.PodIPs) {
				continue
			}
			if _, _, _, err := e.Revoke(ctx, a.ID, who); err != nil {
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
