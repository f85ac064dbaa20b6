package lifecycle

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/ratelimit"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// comparison of a grant with another one. removes: its revocation also removes the other one (provider.RevokesAlso).
// included: the other one includes it (provider.Includes).
type comparison struct{ removes, included bool }

// starter starts steps of a provider in one transaction.
type starter struct {
	e        *Engine
	tx       store.Tx
	provider api.Provider
	slots    *ratelimit.Slots
	objects  *objects
	now      time.Time
	steps    []step
	changed  []*txn
	// compare compares the revocations of two grants.
	compare func(revoke, other provider.Call) comparison
	// atAddresses are the grants at the addresses of the steps, also the grants of the steps.
	atAddresses []store.GrantAt
	// changing are the applications that are being changed, whose rows are not written yet.
	changing map[string]*txn
}

// start starts steps that are due, and writes them.
func (s *starter) start(due []store.DueStep) error {
	if len(due) == 0 {
		return nil
	}
	ids := make([]string, len(due))
	for i, d := range due {
		ids[i] = d.Application
	}
	if err := s.read(ids); err != nil {
		return brokenStep{due[0].Application, due[0].Ordinal, err}
	}
	for _, d := range due {
		t := s.changing[d.Application]
		if t == nil {
			continue // it was deleted before it was locked
		}
		next := step{application: d.Application, ordinal: d.Ordinal, slot: s.slots.Next()}
		ready, err := t.startStep(&next, s.provider, s.overlap)
		if err != nil {
			return brokenStep{d.Application, d.Ordinal, err}
		}
		if ready {
			s.slots.Use()
			s.steps = append(s.steps, next)
		}
	}
	var changes []*store.Changes
	for _, id := range distinct(ids) {
		if t := s.changing[id]; t != nil {
			t.writeStatus()
			changes, s.changed = append(changes, &t.changes), append(s.changed, t)
		}
	}
	if err := s.tx.Apply(changes); err != nil {
		return brokenStep{due[0].Application, due[0].Ordinal, err}
	}
	return nil
}

// read locks and reads applications, and reads the grants at their addresses.
func (s *starter) read(ids []string) error {
	apps, grants, err := lock(s.tx, ids)
	if err != nil {
		return err
	}
	var ips []string
	s.changing = map[string]*txn{}
	for id, app := range apps {
		t := s.e.newTxn(s.tx, s.objects, "")
		t.now, t.app, t.grants = s.now, app, grants[id]
		s.changing[id] = t
		ips = append(ips, grantIPs(app.Request, s.provider)...)
	}
	slices.Sort(ips)
	s.atAddresses, err = s.tx.GrantsAt(slices.Compact(ips))
	return err
}

// overlap finds grants of other applications that the revocation of a grant would remove.
func (s *starter) overlap(t *txn, g store.Grant) (o store.Overlap) {
	revoke := t.call(g, s.provider, provider.Revoke)
	comparisons := map[string]comparison{} // by what differs in the requests, because a comparison evaluates their templates
	for _, a := range s.atAddresses {
		if a.Grant.Application == g.Application {
			continue
		}
		if other := s.changing[a.Grant.Application]; other != nil && a.Grant.Ordinal < len(other.grants) {
			a.Grant, a.RevokeRequested = other.grants[a.Grant.Ordinal], other.app.RevokeRequested
		}
		at := func(ip string) bool { return slices.Contains(a.IPs, ip) }
		if a.Grant.Provider != g.Provider || a.Grant.State == api.Revoked || !slices.ContainsFunc(revoke.IPs, at) {
			continue
		}
		other := revoke
		other.Parameters, other.Kept = a.Grant.Parameters, a.Grant.Kept
		difference, err := json.Marshal([]any{other.Parameters, other.Kept})
		compared, known := comparisons[string(difference)]
		if err != nil || !known {
			compared = s.compare(revoke, other)
			comparisons[string(difference)] = compared
		}
		if !compared.removes {
			continue
		}
		elsewhere := slices.ContainsFunc(revoke.IPs, func(ip string) bool { return !at(ip) })
		o.Add(a, t.app.Request.Cluster, t.app.Request.PodUID, !elsewhere && compared.included)
	}
	return o
}
