package lifecycle

import (
	"encoding/json"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// advance gives every grant that should be worked on, and is not, its job.
// Permissions are granted in the set's order, one after the other, and taken
// back all at once.
func (t *txn) advance() error {
	if t.app.Going {
		return t.takeBack()
	}
	for _, g := range t.grants {
		switch g.State {
		case api.Granted:
			continue
		case api.Requested:
			before := g
			g.Due, g.Began = t.now, t.now
			if err := t.enqueue(&g); err != nil {
				return err
			}
			return t.put(before, g)
		default:
			return nil
		}
	}
	return nil
}

// takeBack begins the revocation of what has not begun it. A grant that is
// being worked on right now is left to its worker, which comes here when it is
// done: no revocation may overtake a grant.
func (t *txn) takeBack() error {
	for _, g := range t.grants {
		if g.Lease != "" || g.State == api.Revoking || g.State == api.Revoked || g.State == api.Leaked {
			continue
		}
		before := g
		p, err := t.provider(g.Provider)
		if err != nil {
			return err
		}
		d := Decide(Input{State: g.State, Going: true, Touched: g.Touched, CanRevoke: p.CanRevoke, NodeScoped: p.NodeScoped})
		g.Calls, g.Failures, g.Pending, g.Due, g.NextTry, g.Began = 0, 0, false, time.Time{}, time.Time{}, t.now
		g.State, g.Reason, g.Message, g.Since = d.State, d.Reason, d.Message, t.now
		if d.Call == provider.Revoke {
			g.Due = t.now
			if err := t.enqueue(&g); err != nil {
				return err
			}
		}
		if err := t.put(before, g); err != nil {
			return err
		}
	}
	return nil
}

// provider reads a provider; one that is gone can do nothing.
func (t *txn) provider(name string) (p api.Provider, err error) {
	o, err := t.Object(store.KindProvider, name)
	if err != nil {
		return p, err
	}
	return p, json.Unmarshal(o.Body, &p)
}
