package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// call returns a call for a grant.
func (t *txn) call(g store.Grant, p api.Provider, op provider.Op) provider.Call {
	c := provider.Call{Op: op, Key: g.CallKey, Application: g.Application, Pod: t.app.Request, IPs: grantIPs(t.app.Request, p), Parameters: g.Parameters, Kept: g.Kept}
	if op == provider.Revoke {
		c.Key += "-revoke"
	}
	return c
}

// startStep stores the intent to call the provider, or the decision if no call is needed. It
// returns true if the caller must call the provider.
func (t *txn) startStep(s *step, p api.Provider, overlap func(*txn, store.Grant) store.Overlap) (bool, error) {
	if s.ordinal >= len(t.grants) || t.grants[s.ordinal].Provider != p.Name {
		return false, nil // the grants were replaced before the application was locked
	}
	if expired := t.grants[s.ordinal]; expired.RunID != "" && !expired.Due.After(t.now) {
		g := expired
		g.Due = t.now
		if err := t.endStep(expired, g); err != nil {
			return false, err
		}
	}
	g := t.grants[s.ordinal]
	if g.Due.IsZero() || g.Due.After(t.now) {
		return false, nil
	}
	others := overlap(t, g)
	before, d := g, Decide(input(t.app, g, p, others))
	if d.State != "" && d.State != g.State {
		g.State, g.Since = d.State, t.now
	}
	if d.Reason != "" {
		g.Reason, g.Message = d.Reason, d.Message
	}
	g.Due, g.NextTry = time.Time{}, time.Time{}
	switch {
	case d.Wait:
		wait := recheckInterval
		if d.State == api.Leaked {
			g.Failures++
			wait = Backoff(p.Retry, g.Failures, t.engine.Random())
		}
		g = scheduleAt(g, t.now.Add(wait))
	case d.Call != "":
		if g.CallKey == "" {
			g.CallKey = fmt.Sprintf("%s-%d-%d", g.Application, g.Ordinal, g.KeysUsed)
		}
		s.runID, s.maybeGranted, s.nodeScoped, s.retry, s.due = newRunID(), g.MaybeGranted, p.NodeScoped, p.Retry, before.Due
		s.callBy = s.slot.Add(maxCallDelay)
		s.call = t.call(g, p, d.Call)
		if before.State != api.Leaked {
			s.leaks = others.Leaks[:min(len(others.Leaks), maxDueLeaks)]
		}
		s.call.Exclusive = t.exclusive(g, p, others)
		g.MaybeGranted, g.RunID, g.Due = true, s.runID, s.callBy.Add(provider.Timeout(p)+finishMargin)
	}
	t.writeGrant(before, g)
	return d.Call != "", nil
}

// exclusive reports whether no other permission of the database user of a grant is granted
// to its addresses.
func (t *txn) exclusive(g store.Grant, p api.Provider, others store.Overlap) bool {
	return !others.UsedByOtherPod && !others.GrantedToPod && !others.CalledByPod && !slices.ContainsFunc(t.grants, func(o store.Grant) bool {
		return o.Ordinal != g.Ordinal && o.Provider == g.Provider && provider.SameUser(p, o.Parameters, g.Parameters) && o.MaybeGranted
	})
}

func input(app store.Application, g store.Grant, p api.Provider, o store.Overlap) Input {
	return Input{State: g.State, RevokeRequested: app.RevokeRequested, MaybeGranted: g.MaybeGranted, Pending: g.Pending, CanRevoke: p.CanRevoke,
		NodeScoped: p.NodeScoped, Overlap: o,
		RevocationBegins: g.Reason == ReasonRevocationRequested,
		// While one is granted, no other call is exclusive.
		ExclusiveCallPossible: p.Type == api.ProviderMySQL && (o.CalledByPod || o.CalledByOtherPod) && !o.Granted}
}
