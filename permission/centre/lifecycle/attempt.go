package lifecycle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// AttemptScope says which grants of an application a repeated request begins again.
type AttemptScope string

// The scopes.
const (
	// AttemptNone begins nothing: the application stays as it is.
	AttemptNone AttemptScope = "None"
	// AttemptRejected rejects the request, with the error that rejection returns.
	AttemptRejected AttemptScope = "Rejected"
	// AttemptRemaining requests the grants that are not Granted.
	AttemptRemaining AttemptScope = "Remaining"
	// AttemptAll requests all grants with their previous parameters, because
	// leaked grants may still exist.
	AttemptAll AttemptScope = "All"
	// AttemptCurrentSet requests the current permissions of the set; no previous
	// grant exists.
	AttemptCurrentSet AttemptScope = "CurrentSet"
)

// NextAttempt returns the scope of the attempt that begins. callActive: a provider call is
// in progress, or the provider may still revoke a leaked grant. podExists: the
// request confirms that the pod exists and has the addresses of the application.
func NextAttempt(state api.State, callActive, podExists bool) AttemptScope {
	switch {
	case state == api.Denied || state == api.Failed:
		return AttemptRemaining
	case state == api.Requested || state == api.Applying || state == api.Granted:
		return AttemptNone
	case state == api.Revoked && podExists:
		return AttemptCurrentSet
	case state == api.Leaked && podExists && !callActive:
		return AttemptAll
	}
	return AttemptRejected
}

// rejection returns the error of a request that NextAttempt rejects.
func rejection(state api.State, grants []store.Grant, podExists bool) error {
	switch {
	case state == api.Revoking:
		return ErrRevokeRequested
	case !podExists:
		return ErrResetAfterRevocation
	case callInProgress(grants):
		return ErrCallActive // Leaked, and the provider is being called for the revocation
	default:
		return ErrRevocationAccepted
	}
}

// callActive reports whether a provider call is in progress for a grant, or the provider may still revoke
// a leaked one, which would remove a new grant.
func callActive(grants []store.Grant) bool {
	return callInProgress(grants) || slices.ContainsFunc(grants, func(g store.Grant) bool { return g.Pending && g.State == api.Leaked })
}

func callInProgress(grants []store.Grant) bool {
	return slices.ContainsFunc(grants, func(g store.Grant) bool { return g.RunID != "" })
}

// beginAttempt begins a new attempt.
func (t *txn) beginAttempt(scope AttemptScope, members []member) error {
	t.app.Attempt++
	t.app.RevokeRequested, t.app.AttemptBegan = false, t.now
	var err error
	switch scope {
	case AttemptRemaining:
		err = t.requestRemaining(members)
	case AttemptAll:
		err = t.requestAll()
	case AttemptCurrentSet:
		t.requestCurrentSet(members)
	case AttemptNone, AttemptRejected:
		err = errUnchanged
	}
	if err != nil {
		return err
	}
	return t.advance()
}

func (t *txn) requestRemaining(members []member) error {
	byName := map[string]member{}
	for _, m := range members {
		byName[m.permission.Name] = m
	}
	for _, before := range t.grants {
		if before.State == api.Granted {
			continue
		}
		g := before
		// A grant that may exist keeps its parameters, so that its revocation finds it. Exception: after a
		// denial, if a revocation with the current parameters also removes it. After a failure there is no
		// exception: the call may have granted privileges. While another permission has the same MySQL user, the
		// next call does not remove them, and the revocation ends without a call if that permission includes the
		// current parameters.
		if m, ok := byName[g.Permission]; ok && (!g.MaybeGranted || g.State == api.Denied && m.revokes(g)) {
			g = m.applyTo(g)
			// The provider may be another one, or have become node-scoped while nothing was granted.
			t.changes.ReplaceGrantIPs(g, grantIPs(t.app.Request, m.provider))
		}
		if err := t.requestAgain(before, g); err != nil {
			return err
		}
	}
	return nil
}

func (t *txn) requestAll() error {
	for _, before := range t.grants {
		g := before
		// A new key, because this is a new request. Kept stays: until the provider answers, it is what finds the
		// leaked grant to revoke it.
		g.CallKey = ""
		g.KeysUsed++
		g.Due, g.NextTry = time.Time{}, time.Time{}
		if err := t.requestAgain(before, g); err != nil {
			return err
		}
	}
	return nil
}

// requestAgain requests a grant of an earlier attempt. A provider that had granted nothing may be deleted, and
// without it the step would never run.
func (t *txn) requestAgain(before, g store.Grant) error {
	_, err := object[api.Provider](t.objects, store.KindProvider, g.Provider)
	if errors.Is(err, store.ErrNotFound) {
		return NotRegistered{fmt.Sprintf("provider %s, from which the pod requested permission %s, is deleted; delete the pod: a new pod requests the current set %s",
			g.Provider, g.Permission, t.app.Request.Set)}
	} else if err != nil {
		return err
	}
	t.writeGrant(before, t.toRequested(g))
	return nil
}

func (t *txn) requestCurrentSet(members []member) {
	keysUsed := 0
	for _, g := range t.grants {
		keysUsed = max(keysUsed, g.KeysUsed)
	}
	t.changes.DeleteGrants()
	t.createGrants(members, keysUsed)
}

// toRequested resets a grant to Requested.
func (t *txn) toRequested(g store.Grant) store.Grant {
	g.State, g.Reason, g.Message, g.Since = api.Requested, ReasonRequested, "", t.now
	g.Calls, g.Failures, g.Pending = 0, 0, false
	return g
}

// createGrants creates the grants of a set. keysUsed counts the keys of earlier grants.
func (t *txn) createGrants(members []member, keysUsed int) {
	t.grants = make([]store.Grant, len(members))
	for i, m := range members {
		g := m.applyTo(t.toRequested(store.Grant{Application: t.app.ID, Ordinal: i, KeysUsed: keysUsed}))
		t.grants[i] = g
		t.changes.PutGrant(g)
		t.changes.PutGrantIPs(g, grantIPs(t.app.Request, m.provider))
	}
}

// revokes reports whether a call to revoke the permission's current parameters removes a grant with
// previous ones: a database drops the user, whatever its privileges are.
func (m member) revokes(g store.Grant) bool {
	return g.Provider == m.provider.Name && provider.SameUser(m.provider, g.Parameters, m.permission.Parameters)
}

// applyTo copies the permission's current definition to a grant.
func (m member) applyTo(g store.Grant) store.Grant {
	if !maps.Equal(g.Parameters, m.permission.Parameters) || g.Provider != m.provider.Name {
		// Another request needs another key.
		g.CallKey = ""
		g.KeysUsed++
	}
	g.Permission, g.Provider, g.Owner, g.Parameters = m.permission.Name, m.provider.Name, m.permission.Owner, m.permission.Parameters
	g.Subject = m.permission.Name
	if m.provider.Type == api.ProviderMySQL {
		g.Subject = "user " + m.permission.Parameters["user"]
	}
	return g
}
