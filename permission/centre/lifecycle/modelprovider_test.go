package lifecycle_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// entry is what a provider can distinguish: a permission with its module at an address. Provider p3 has one entry for
// each address, without permission and module.
type entry struct{ provider, permission, module, ip string }

func entryOf(g store.Grant, ip string) entry {
	if g.Provider == perAddress {
		return entry{provider: g.Provider, ip: ip}
	}
	return entry{g.Provider, g.Permission, g.Parameters["module"], ip}
}

// modelProvider grants and revokes, and answers anything.
type modelProvider struct {
	*model
	// granted and pending are the entries that exist or are to be decided, by application.
	granted, pending map[entry]string
	// revoking are the entries whose revocation the centre knows as accepted. The provider revokes them later.
	revoking map[entry]bool
	calls    []*modelCall
}

// modelCall is a call in progress.
type modelCall struct {
	op          provider.Op
	of          entry
	application string
	until       time.Time
}

// Client implements lifecycle.Clients. The engine calls it between the stored intent
// and the call, so other processes may act here.
func (c *modelProvider) Client(p api.Provider) (provider.Client, error) {
	c.meanwhile(false)
	if c.chance(25, "die before the call") {
		panic(crashed{})
	}
	return modelClient{c, p.Name}, nil
}

type modelClient struct {
	*modelProvider
	name string
}

// SameRequest compares revocations of grants with different parameters or kept values.
func (c modelClient) SameRequest(context.Context, provider.Call, provider.Call) bool {
	return c.name == perAddress
}

// Call implements provider.Client.
func (c modelClient) Call(_ context.Context, call provider.Call) provider.Result {
	g := c.grantOf(c.name, call)
	g.Parameters = call.Parameters
	began := &modelCall{call.Op, entryOf(g, call.IPs[0]), call.Application, c.clock.Now().Add(callTimeout)}
	c.checkCall(began)
	c.checkOrder(g, call)
	c.calls = append(c.calls, began)
	r := c.answer(began)
	if c.chance(12, "die in the call") {
		c.end(began)
		panic(crashed{})
	}
	c.meanwhile(true)
	if c.clock.Now().After(began.until) {
		r = provider.Result{Outcome: provider.Failed, Reason: provider.ReasonProviderTimeout, Sent: true}
	}
	c.end(began)
	return r
}

func (c *modelProvider) end(call *modelCall) {
	c.calls = slices.DeleteFunc(c.calls, func(o *modelCall) bool { return o == call })
}

// grantOf returns the grant that a call is for: a set has one of each provider.
func (m *model) grantOf(name string, call provider.Call) store.Grant {
	grants, err := m.store.View(m.ctx()).Grants(call.Application)
	m.must(nil, err)
	i := slices.IndexFunc(grants, func(g store.Grant) bool { return g.Provider == name })
	if i < 0 {
		m.t.Fatalf("call %+v has no grant", call)
	}
	return grants[i]
}

// answer decides what the provider does, and does it.
func (c *modelProvider) answer(call *modelCall) provider.Result {
	done := provider.Result{Outcome: provider.Done, Reason: provider.ReasonGranted, Sent: true}
	failed := provider.Result{Outcome: provider.Failed, Reason: provider.ReasonProviderError, Sent: true}
	choice := 0
	if !c.quiet {
		choice = c.index(9, "answer")
	}
	_, granted := c.granted[call.of]
	switch {
	case choice == 0 || choice == 1: // done
		c.apply(call)
		return done
	case choice == 2: // done, but the answer is lost
		c.apply(call)
		return provider.Result{Outcome: provider.Failed, Reason: provider.ReasonProviderTimeout, Sent: true}
	case choice == 3 && call.op != provider.Revoke: // decided later
		if !granted {
			c.pending[call.of] = call.application
		}
		return provider.Result{Outcome: provider.Pending, Reason: provider.ReasonPending, Sent: true}
	case choice == 3: // revoked later
		return provider.Result{Outcome: provider.Pending, Reason: provider.ReasonPending, Sent: true}
	case choice == 4 && (call.op != provider.Poll || !granted): // rejected, perhaps after a lost answer
		if call.op == provider.Poll {
			delete(c.pending, call.of)
		}
		return provider.Result{Outcome: provider.Denied, Reason: provider.ReasonDenied, Sent: true}
	case choice == 5: // no connection
		return provider.Result{Outcome: provider.Failed, Reason: provider.ReasonProviderUnreachable}
	case choice == 6:
		return provider.Result{Outcome: provider.Failed, Reason: provider.ReasonProviderThrottled, RetryAfter: 30 * time.Second, Sent: true}
	default:
		return failed
	}
}

func (c *modelProvider) apply(call *modelCall) {
	delete(c.pending, call.of)
	if call.op == provider.Revoke {
		delete(c.granted, call.of)
		delete(c.revoking, call.of)
		return
	}
	c.granted[call.of] = call.application
}

// pick picks one of the entries.
func pick[V any](m *model, entries map[entry]V, label string) entry {
	return slices.SortedFunc(maps.Keys(entries), func(a, b entry) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	})[m.index(len(entries), label)]
}

// decide lets the provider decide a pending request.
func (m *model) decide() {
	c := m.provider
	if len(c.pending) == 0 {
		return
	}
	h := pick(m, c.pending, "pending")
	if m.chance(2, "granted") {
		c.granted[h] = c.pending[h]
	}
	delete(c.pending, h)
}

// completeRevocation lets the provider complete a revocation that it has accepted.
func (m *model) completeRevocation() {
	c := m.provider
	if len(c.revoking) == 0 {
		return
	}
	h := pick(m, c.revoking, "accepted revocation")
	delete(c.granted, h)
	delete(c.revoking, h)
}

// checkCall fails the test if a call begins that must not begin.
func (c *modelProvider) checkCall(call *modelCall) {
	app, err := c.store.View(c.ctx()).Application(call.application)
	c.must(nil, err)
	if call.op != provider.Revoke && c.revoked[call.application] {
		c.t.Fatalf("%s begins for pod %s, whose revocation was requested", call.op, app.Request.PodUID)
	}
	for _, o := range c.calls {
		// A revocation may overlap a grant that is revoked afterwards.
		opposite := o.op == provider.Revoke && call.op != provider.Revoke || o.op != provider.Revoke && call.op == provider.Revoke && !c.revoked[o.application]
		if o.of == call.of && (opposite || o.application == call.application) && !c.clock.Now().After(o.until) {
			c.t.Fatalf("%s for application %s begins during %s of %+v for application %s", call.op, call.application, o.op, o.of, o.application)
		}
	}
	if call.op != provider.Revoke {
		return
	}
	for _, other := range c.applications() {
		if other.ID == call.application || c.revoked[other.ID] || address(call.of.provider, other.Request) != call.of.ip {
			continue
		}
		grants, err := c.store.View(c.ctx()).Grants(other.ID)
		c.must(nil, err)
		for _, g := range grants {
			if g.State == api.Granted && entryOf(g, call.of.ip) == call.of {
				c.t.Fatalf("revoking %+v of pod %s removes the grant of pod %s", call.of, app.Request.PodUID, other.Request.PodUID)
			}
		}
	}
}

// checkOrder checks that permissions are granted in the order of the set.
func (m *model) checkOrder(g store.Grant, call provider.Call) {
	grants, err := m.store.View(m.ctx()).Grants(call.Application)
	m.must(nil, err)
	for _, before := range grants[:g.Ordinal] {
		if call.Op != provider.Revoke && before.State != api.Granted {
			m.t.Fatalf("%s of %s begins, but %s is %s", call.Op, g.Permission, before.Permission, before.State)
		}
	}
}

// check checks that the provider has every grant that is Granted in the store, and that
// the store has every grant of the provider.
func (m *model) check(t interface{ Fatalf(string, ...any) }) {
	known := map[entry]bool{}
	for _, app := range m.applications() {
		grants, err := m.store.View(m.ctx()).Grants(app.ID)
		m.must(nil, err)
		for _, g := range grants {
			h := entryOf(g, address(g.Provider, app.Request))
			if app.RevokeRequested && g.Pending && g.State != api.Revoked && g.RunID == "" {
				m.provider.revoking[h] = true
			}
			known[h] = known[h] || g.MaybeGranted && g.State != api.Revoked
			if _, granted := m.provider.granted[h]; g.State == api.Granted && !granted {
				t.Fatalf("pod %s is Granted %+v, but the provider has it not", app.Request.PodUID, h)
			}
		}
		if m.revoked[app.ID] != app.RevokeRequested {
			t.Fatalf("application of pod %s: revocation requested %t, want %t", app.Request.PodUID, app.RevokeRequested, m.revoked[app.ID])
		}
	}
	for h := range maps.Keys(m.provider.granted) {
		if !known[h] {
			t.Fatalf("the provider has granted %+v, and the centre does not know it", h)
		}
	}
}

// quiesce ends all pods and lets everything succeed: nothing is left at the provider, and
// each application is Revoked.
func (m *model) quiesce() {
	m.quiet = true
	for _, p := range m.pods {
		p.exists = false
	}
	m.clock.Step(10 * time.Minute)
	e := m.engines[0]
	for granted := -1; granted != 0; {
		result, err := e.ApplyPodReport(m.ctx(), "c1", api.PodReport{ClusterUID: "c1-uid", Observed: m.clock.Now(), Empty: true}, "controller")
		if granted = result.Held; err == nil && granted > 0 {
			_, err = e.ConfirmReport(m.ctx(), "c1", api.ReportConfirmation{Revoke: granted}, "admin")
		}
		if err != nil {
			m.t.Fatalf("report: %v", err)
		}
	}
	for range 20 {
		for _, provider := range modelProviders {
			for m.run(provider, e) {
			}
		}
		m.clock.Step(time.Hour)
	}
	for _, app := range m.applications() {
		if app.State != api.Revoked {
			m.t.Fatalf("the application of pod %s is %s: %s", app.Request.PodUID, app.State, app.Message)
		}
	}
	due, err := m.store.View(m.ctx()).NextDue()
	m.must(nil, err)
	if len(m.provider.granted)+len(m.provider.pending)+len(due) > 0 {
		m.t.Fatalf("left at the provider: %v, pending %v; due %v", m.provider.granted, m.provider.pending, due)
	}
}
