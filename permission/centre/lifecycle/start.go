package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/ratelimit"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

const (
	// maxStartAhead is the longest time before its slot at which a step is started.
	maxStartAhead = 500 * time.Millisecond
	// maxCallDelay is how long after its first slot a call may begin, finishMargin the time for
	// the transaction that ends the step. A run expires after the slot, both of these and
	// the timeout of the provider.
	maxCallDelay = 2 * time.Second
	finishMargin = 3 * time.Second
	// maxSteps bounds the steps of one transaction.
	maxSteps = 64
	// recheckInterval is the delay of a step that waits, for example for the revocation
	// of another pod.
	recheckInterval = time.Second
	// brokenStepDelay is the delay after which a step that could not be started is
	// started again.
	brokenStepDelay = time.Minute
)

// errStaleStep: the run of a step expired, and the step was started again, perhaps by another replica.
var errStaleStep = errors.New("stale step")

// step is a started step: a call whose intent is stored.
type step struct {
	application string
	ordinal     int
	call        provider.Call
	runID       string
	// slot is when the call may be made, callBy when it must have begun.
	slot, callBy time.Time
	// due is when the step was due; it is restored if the call is not made.
	due          time.Time
	maybeGranted bool
	nodeScoped   bool
	retry        api.Retry
	// leaks are the applications of Leaked grants that wait for this revocation, at most maxDueLeaks. The grants are
	// retried after it. A retry of a leak has none: each of many leaks would make all others due.
	leaks []string
}

// brokenStep is a step that cannot be started.
type brokenStep struct {
	application string
	ordinal     int
	err         error
}

func (b brokenStep) Error() string { return b.err.Error() }
func (b brokenStep) Unwrap() error { return b.err }

// startResult is the result of startSteps.
type startResult struct {
	provider api.Provider
	// dueCount is how many steps were due, at most the limit of startSteps.
	dueCount int
	steps    []step
	// wait is the time until the next step can be started.
	wait time.Duration
}

// startSteps starts at most n steps of a provider that are due. While the breaker is
// open, it starts none and ends attempts that are overdue.
func (e *Engine) startSteps(ctx context.Context, provider string, n int) (b startResult, err error) {
	v := e.Store.View(ctx)
	if b.dueCount, err = v.CountDue(provider, e.Clock.Now(), n); err != nil || b.dueCount == 0 {
		return b, err
	}
	b.provider, err = e.provider(v, provider)
	if errors.Is(err, store.ErrNotFound) {
		return startResult{}, nil
	} else if err != nil {
		return b, err
	}
	if b.wait = e.Breaker.OpenFor(provider); b.wait > 0 {
		return b, e.failOverdue(ctx, b.provider)
	}
	// Build the client before a slot is reserved: building takes longer than a slot lasts.
	// The client is cached.
	client := e.client(b.provider)
	b.steps, b.wait, err = e.startInSlots(ctx, b.provider, client, b.dueCount)
	return b, err
}

// startInSlots starts steps of a provider that are due, oldest first: at most n, and only
// as many as have a slot within maxStartAhead. It also writes the decisions of steps that need
// no call. wait is the time until the next step has a slot.
func (e *Engine) startInSlots(ctx context.Context, p api.Provider, client provider.Client, n int) (steps []step, wait time.Duration, err error) {
	var s *starter
	err = e.Store.WriteInBackground(ctx, func(tx store.Tx) error {
		slots, err := e.Limiter.Begin(tx, p.Name, p.RateLimit)
		if err != nil {
			return err
		}
		s = &starter{e: e, tx: tx, provider: p, slots: slots, objects: newObjects(tx.View), now: e.Clock.Now().UTC(),
			compare: func(revoke, other provider.Call) (c comparison) {
				c.removes = provider.RevokesAlso(ctx, p, client, revoke, other)
				c.included = c.removes && provider.Includes(ctx, p, client, other, revoke)
				return c
			}}
		for decided := 0; len(s.steps) < n && decided < maxSteps; {
			free := slots.CountUntil(s.now.Add(maxStartAhead), min(n-len(s.steps), maxSteps-decided))
			if wait = slots.Next().Add(-maxStartAhead).Sub(s.now); free == 0 {
				break
			}
			due, err := tx.DueSteps(p.Name, s.now, free)
			if err != nil {
				return err
			}
			if err := s.start(due); err != nil {
				return err
			}
			if decided += len(due); len(due) < free {
				break
			}
		}
		return slots.Save()
	})
	if err != nil && n > 1 && !store.WouldFailAgain(err) {
		return e.startInSlots(ctx, p, client, 1) // one step may be broken
	} else if err != nil {
		return nil, 0, err
	}
	for _, t := range s.changed {
		e.committed(t)
	}
	return s.steps, max(wait, 0), nil
}

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
			wait = Backoff(p.Retry, g.Failures, t.e.Random())
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
