package lifecycle

import (
	"context"
	"errors"
	"slices"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// statesBeforeRevocation are the states of an application whose revocation was not
// requested.
var statesBeforeRevocation = []api.State{api.Requested, api.Applying, api.Granted, api.Denied, api.Failed}

// Revoke begins the revocation of an application; it returns true if the
// revocation was not requested before.
func (e *Engine) Revoke(ctx context.Context, id, user string) (store.Application, []store.Grant, bool, error) {
	app, grants, err := e.update(ctx, id, user, requestRevocation)
	if errors.Is(err, errUnchanged) {
		app, grants, err = e.load(ctx, id)
		return app, grants, false, err
	}
	return app, grants, err == nil, err
}

// requestRevocation begins the revocation of an application, or returns errUnchanged.
func requestRevocation(t *txn) error {
	if t.app.RevokeRequested {
		return errUnchanged
	}
	t.app.RevokeRequested = true
	return t.advance()
}

// RevokeAfterDeadline revokes an application whose pod was deleted at its deadline, before
// the revocation ended. It begins the revocation if nobody did. Grants that are being revoked become
// Leaked, and their revocation is retried. A grant that a call is requesting is revoked when the call ends.
func (e *Engine) RevokeAfterDeadline(ctx context.Context, id, user string) error {
	_, _, err := e.update(ctx, id, user, func(t *txn) error {
		changed := !t.app.RevokeRequested
		if changed {
			t.app.RevokeRequested = true
			if err := t.advance(); err != nil {
				return err
			}
		}
		for _, before := range t.grants {
			if before.State != api.Revoking {
				continue
			}
			g := before
			g.State, g.Reason, g.Since = api.Leaked, ReasonRevocationDeadlineExceeded, t.now
			g.Message = "the pod was deleted at its deadline before the permission was revoked; if the provider can revoke, the revocation is retried"
			t.writeGrant(before, g)
			changed = true
		}
		if !changed {
			return errUnchanged
		}
		return nil
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

// RevokePod revokes all applications of a pod, except those for exactly
// KeepIPs. Without KeepIPs the pod has ended, and later requests for it are
// rejected. It returns the ids, including those that were already being revoked.
func (e *Engine) RevokePod(ctx context.Context, r api.RevokeRequest, user string) ([]string, error) {
	keep := distinct(r.KeepIPs)
	if len(keep) == 0 {
		if err := e.endPod(ctx, r.Cluster, r.PodUID); err != nil {
			return nil, err
		}
	}
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
				err = e.RevokeAfterDeadline(ctx, a.ID, user)
			} else {
				_, _, _, err = e.Revoke(ctx, a.ID, user)
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

// Reset begins a new attempt of a denied or failed application.
func (e *Engine) Reset(ctx context.Context, id, user string) (store.Application, []store.Grant, RequestOutcome, error) {
	return e.requestExisting(ctx, id, user, false)
}
