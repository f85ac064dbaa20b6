package lifecycle

import (
	"maps"
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// Attempt is what asking for an application that there is comes to.
type Attempt string

// The attempts.
const (
	// AttemptSame is none: it stands as it was asked for.
	AttemptSame Attempt = "Same"
	// AttemptRefused: it is being taken back, or its pod is gone.
	AttemptRefused Attempt = "Refused"
	// AttemptRest asks for what is not granted.
	AttemptRest Attempt = "Rest"
	// AttemptAll asks for all as it was: what is leaked may be granted still.
	AttemptAll Attempt = "All"
	// AttemptAnew asks for the set as it is now: nothing is left of the former.
	AttemptAnew Attempt = "Anew"
)

// Again says which attempt begins. busy: a provider is being called; lives: who
// asks says that the pod lives, and has the addresses of the application again.
func Again(state api.State, busy, lives bool) Attempt {
	switch {
	case state == api.Denied || state == api.Failed:
		return AttemptRest
	case state == api.Requested || state == api.Applying || state == api.Granted:
		return AttemptSame
	case state == api.Revoked && lives:
		return AttemptAnew
	case state == api.Leaked && lives && !busy:
		return AttemptAll
	}
	return AttemptRefused
}

// busy says whether somebody acts on one of the grants.
func busy(grants []store.Grant) bool {
	return slices.ContainsFunc(grants, func(g store.Grant) bool { return g.Lease != "" })
}

// again begins a new attempt.
func (t *txn) again(attempt Attempt, members []member) error {
	t.app.Attempt++
	t.app.Going, t.app.Asked = false, t.now
	var err error
	switch attempt {
	case AttemptRest:
		err = t.askRest(members)
	case AttemptAll:
		err = t.askAll()
	case AttemptAnew:
		err = t.askAnew(members)
	case AttemptSame, AttemptRefused:
		return errNothing
	}
	if err != nil {
		return err
	}
	return t.advance()
}

func (t *txn) askRest(members []member) error {
	byName := map[string]member{}
	for _, m := range members {
		byName[m.permission.Name] = m
	}
	for _, before := range t.grants {
		if before.State == api.Granted {
			continue
		}
		g := before
		// What may have been granted is asked for again as it was.
		if m, ok := byName[g.Permission]; ok && !g.Touched {
			g = m.begin(g)
		}
		if err := t.put(before, t.requested(g)); err != nil {
			return err
		}
	}
	return nil
}

func (t *txn) askAll() error {
	for _, before := range t.grants {
		g := t.requested(before)
		// The provider must not take it for what it was asked before; and what
		// comes late of the revocation must not find its step.
		g.CallKey, g.Kept = "", nil
		g.Keys++
		g.Step++
		g.Due, g.NextTry = time.Time{}, time.Time{}
		if err := t.put(before, g); err != nil {
			return err
		}
	}
	return nil
}

func (t *txn) askAnew(members []member) error {
	var last store.Grant
	for _, g := range t.grants {
		last.Step, last.Keys = max(last.Step, g.Step), max(last.Keys, g.Keys)
	}
	last.Step++ // what comes late must not find its step
	if err := t.DeleteGrants(t.app.ID); err != nil {
		return err
	}
	return t.fill(members, last)
}

// requested is a grant that nobody has been called for in this attempt.
func (t *txn) requested(g store.Grant) store.Grant {
	g.State, g.Reason, g.Message, g.Since = api.Requested, ReasonRequested, "", t.now
	g.Calls, g.Failures = 0, 0
	return g
}

// fill gives the application the grants of a set. Steps and keys count on from
// those of the last, which are used up.
func (t *txn) fill(members []member, last store.Grant) error {
	t.grants = make([]store.Grant, len(members))
	for i, m := range members {
		g := m.begin(t.requested(store.Grant{Application: t.app.ID, Ordinal: i, Step: last.Step, Keys: last.Keys}))
		t.grants[i] = g
		if err := t.PutGrant(g); err != nil {
			return err
		}
		if err := t.PutGrantIPs(g, addresses(t.app.Request, m.provider)); err != nil {
			return err
		}
	}
	return nil
}

// begin takes over what the permission says now.
func (m member) begin(g store.Grant) store.Grant {
	if !maps.Equal(g.Parameters, m.permission.Parameters) || g.Provider != m.provider.Name {
		// Another request must not have the key of the one before.
		g.CallKey = ""
		g.Keys++
	}
	g.Permission, g.Provider, g.Owner, g.Parameters = m.permission.Name, m.provider.Name, m.permission.Owner, m.permission.Parameters
	g.Subject = provider.Subject(m.provider, m.permission)
	return g
}
