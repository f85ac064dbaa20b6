package lifecycle

import (
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
)

// advance makes the next steps of the grants due. Permissions are granted one
// after the other, in the order of the set, and revoked all at once.
func (t *txn) advance() error {
	if t.app.RevokeRequested {
		return t.revokeGrants()
	}
	for _, g := range t.grants {
		switch g.State {
		case api.Granted:
			continue
		case api.Requested:
			if !g.Due.IsZero() {
				return nil // it keeps its turn
			}
			before := g
			g.Due, g.Began = t.now, t.now
			t.writeGrant(before, g)
			return nil
		default:
			return nil
		}
	}
	return nil
}

// revokeGrants begins the revocation of each grant that is not being revoked. A
// grant with a step in progress is skipped: advance is called when the step ends.
// So a revocation never overtakes a grant.
func (t *txn) revokeGrants() error {
	for _, g := range t.grants {
		if g.RunID != "" || g.State == api.Revoking || g.State == api.Revoked || g.State == api.Leaked {
			continue
		}
		before := g
		// Whether the provider can revoke is decided by the step, which sees the grants of other applications: a grant that
		// another pod or set needs does not leak.
		d := Decide(Input{State: g.State, RevokeRequested: true, MaybeGranted: g.MaybeGranted, CanRevoke: true})
		g.Calls, g.Failures, g.Pending, g.Due, g.NextTry, g.Began = 0, 0, false, time.Time{}, time.Time{}, t.now
		g.State, g.Reason, g.Message, g.Since = d.State, d.Reason, d.Message, t.now
		if d.Call == provider.Revoke {
			g.Due = t.now
		}
		t.writeGrant(before, g)
	}
	return nil
}
