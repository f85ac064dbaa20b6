package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// ErrCallActive is returned if the provider is being called for a leaked grant.
var ErrCallActive = errors.New("the provider is being called for the leaked grant")

// ErrRevocationAccepted is returned if the provider has accepted the revocation of a leaked grant, and has
// not revoked it yet.
var ErrRevocationAccepted = errors.New("the provider has accepted the revocation of the leaked grant and has not revoked it yet")

// Acknowledge records that a user has removed the leaked grants of an application at
// their providers. They are Revoked and are not retried. authorize is called for each of
// them in the transaction, because another grant may leak meanwhile.
func (e *Engine) Acknowledge(ctx context.Context, id, user string, authorize func(store.Grant) error) (store.Application, []store.Grant, error) {
	app, grants, err := e.update(ctx, id, user, func(t *txn) error {
		for _, g := range t.grants {
			if g.State != api.Leaked {
				continue
			}
			if err := authorize(g); err != nil {
				return err
			}
		}
		n, err := t.acknowledge(func(store.Grant) bool { return true })
		if err == nil && n == 0 {
			return errUnchanged
		}
		return err
	})
	if errors.Is(err, errUnchanged) {
		app, grants, err = e.load(ctx, id)
	}
	return app, grants, err
}

// AcknowledgeProvider is Acknowledge for all leaked grants of a provider, except those of applications
// for which it is being called to revoke one. It returns their number.
func (e *Engine) AcknowledgeProvider(ctx context.Context, provider, user string) (int, error) {
	if _, err := e.Store.View(ctx).Object(store.KindProvider, provider); err != nil {
		return 0, err
	}
	acknowledged, after := 0, ""
	for {
		ids, err := e.Store.View(ctx).LeakedApplications(provider, after, 100)
		if err != nil || len(ids) == 0 {
			return acknowledged, err
		}
		for _, id := range ids {
			after = id
			n := 0
			_, _, err := e.update(ctx, id, user, func(t *txn) (err error) {
				if n, err = t.acknowledge(func(g store.Grant) bool { return g.Provider == provider }); err == nil && n == 0 {
					return errUnchanged
				}
				return err
			})
			switch {
			case err == nil:
				acknowledged += n
			case !errors.Is(err, errUnchanged) && !errors.Is(err, ErrCallActive):
				return acknowledged, err
			}
		}
	}
}

// acknowledge ends the leaked grants that a condition selects, and returns their number.
func (t *txn) acknowledge(selected func(store.Grant) bool) (n int, err error) {
	for _, before := range t.grants {
		if before.State != api.Leaked || !selected(before) {
			continue
		}
		if before.RunID != "" {
			return n, ErrCallActive
		}
		g := before
		g.State, g.Reason, g.Since = api.Revoked, ReasonAcknowledged, t.now
		g.Message = fmt.Sprintf("%s stated that the grant no longer exists", t.user)
		g.MaybeGranted, g.Pending, g.Due, g.NextTry = false, false, time.Time{}, time.Time{}
		t.writeGrant(before, g)
		n++
	}
	return n, nil
}
