package lifecycle_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// leakAccepted grants the set of pod a and leaks it after the provider has accepted the revocation.
func (f *setsFixture) leakAccepted(leak func(*setsFixture)) string {
	f.t.Helper()
	f.updateProvider(func(p *api.Provider) { p.Retry.PollSeconds = 5 })
	id := f.requestFor(podRequest("a"))
	f.run()
	f.provider.outcome = provider.Pending
	if _, _, _, err := f.Revoke(f.t.Context(), id, "owner"); err != nil {
		f.t.Fatal(err)
	}
	if !runNext(f.t, f.Engine, f.clock.Now()) {
		f.t.Fatal("no step is due")
	}
	if leak(f); f.state(id) != api.Leaked {
		f.t.Fatalf("the application is %s, want Leaked", f.state(id))
	}
	return id
}

func (f *setsFixture) requestFor(r api.ApplicationRequest) string {
	f.t.Helper()
	a, _, _, err := f.Request(f.t.Context(), r, "server")
	if err != nil {
		f.t.Fatal(err)
	}
	return a.ID
}

func (f *setsFixture) acknowledge(id string) {
	f.t.Helper()
	if _, _, err := f.Acknowledge(f.t.Context(), id, "owner", func(store.Grant) error { return nil }); err != nil {
		f.t.Fatal(err)
	}
}

// expectWaiting checks that the grant of an application waits for a revocation.
func (f *setsFixture) expectWaiting(id string) {
	f.t.Helper()
	grants, err := f.Store.View(f.t.Context()).Grants(id)
	if err != nil {
		f.t.Fatal(err)
	}
	if g := grants[0]; g.State != api.Requested || g.Reason != lifecycle.ReasonWaitingForRevocation {
		f.t.Errorf("the grant is %s with reason %s, want Requested with reason WaitingForRevocation", g.State, g.Reason)
	}
}

func podRequest(uid string) api.ApplicationRequest {
	return api.ApplicationRequest{Cluster: "c1", Namespace: "shop", Pod: "web", PodUID: uid, PodIPs: []string{"10.0.0.1"}, Set: "web"}
}

// letGo revokes the pod at its deadline.
func (f *setsFixture) letGo(uid string) {
	f.t.Helper()
	if _, err := f.RevokePod(f.t.Context(), api.RevokeRequest{Cluster: "c1", PodUID: uid, LetGo: true}, "controller"); err != nil {
		f.t.Fatal(err)
	}
}

// failRevocation lets the next call fail, which is the last of the revocation.
func (f *setsFixture) failRevocation() {
	f.t.Helper()
	f.provider.outcome = provider.Failed
	if !runNext(f.t, f.Engine, f.clock.Now().Add(time.Minute)) {
		f.t.Fatal("no step is due")
	}
}

// The provider may revoke at any time after it has accepted the revocation, and would remove the new grant.
func TestAGrantWaitsForTheAcceptedRevocationOfALeak(t *testing.T) {
	for name, leak := range map[string]func(*setsFixture){
		"at the deadline of its pod": func(f *setsFixture) { f.letGo("a") },
		"after a failed call":        (*setsFixture).failRevocation,
	} {
		t.Run(name, func(t *testing.T) {
			f := newSetsFixture(t, provider.Done)
			first := f.leakAccepted(leak)
			calls := len(f.provider.calls)
			second := f.requestFor(podRequest("b"))
			if !runNext(t, f.Engine, f.clock.Now()) {
				t.Fatal("no step is due")
			}
			f.expectWaiting(second)
			f.provider.outcome = provider.Done
			f.run()
			if diff := cmp.Diff([]provider.Op{provider.Revoke, provider.Grant}, f.provider.calls[calls:]); diff != "" {
				t.Error(diff)
			}
			if f.state(first) != api.Revoked || f.state(second) != api.Granted {
				t.Errorf("the first pod is %s, the second %s", f.state(first), f.state(second))
			}
		})
	}
}

func TestAGrantDoesNotWaitForAnAcknowledgedLeak(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	first := f.leakAccepted(func(f *setsFixture) { f.letGo("a") })
	second := f.requestFor(podRequest("b"))
	for range 10 {
		f.run() // the provider does not decide
	}
	f.expectWaiting(second)
	f.provider.outcome = provider.Done
	f.acknowledge(first)
	f.run()
	if f.state(second) != api.Granted {
		t.Errorf("the second pod is %s", f.state(second))
	}
}

// A pod in a new sandbox may have the same address again.
func TestAPodIsNotGrantedAgainWhileTheRevocationOfItsLeakIsAccepted(t *testing.T) {
	for name, end := range map[string]func(*setsFixture, string){
		"until it is revoked":      func(f *setsFixture, _ string) { f.run() },
		"until it is acknowledged": func(f *setsFixture, id string) { f.acknowledge(id) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newSetsFixture(t, provider.Done)
			id := f.leakAccepted((*setsFixture).failRevocation)
			if _, _, _, err := f.Request(t.Context(), podRequest("a"), "server"); !errors.Is(err, lifecycle.ErrRevocationAccepted) {
				t.Errorf("a request of the pod returned %v, want ErrRevocationAccepted", err)
			}
			f.provider.outcome = provider.Done
			if end(f, id); f.state(id) != api.Revoked {
				t.Fatalf("the application is %s, want Revoked", f.state(id))
			}
			f.requestFor(podRequest("a"))
			f.run()
			if f.state(id) != api.Granted {
				t.Errorf("the application is %s, want Granted", f.state(id))
			}
		})
	}
}

// The other pod waits for the revocation, so the revocation must not wait for the other pod, or end without it.
func TestAnAcceptedRevocationDoesNotWaitForAPodThatWaitsForIt(t *testing.T) {
	on := func(cluster, uid string, nodeIPs ...string) api.ApplicationRequest {
		return api.ApplicationRequest{Cluster: cluster, PodUID: uid, PodIPs: []string{"192.0.2.1"}, NodeIPs: nodeIPs, HostNetwork: true, Set: "web"}
	}
	for name, other := range map[string]api.ApplicationRequest{
		"all addresses":                     on("c1", "b", "192.0.2.1", "2001:db8::1"),
		"one of the addresses":              on("c1", "b", "192.0.2.1"),
		"the pod under another cluster":     on("c2", "a", "192.0.2.1", "2001:db8::1"),
		"another pod under another cluster": on("c2", "b", "192.0.2.1", "2001:db8::1"),
	} {
		t.Run(name, func(t *testing.T) {
			f := newSetsFixture(t, provider.Done)
			f.updateProvider(func(p *api.Provider) { p.NodeScoped, p.Retry.PollSeconds = true, 5 })
			first := f.requestFor(on("c1", "a", "192.0.2.1", "2001:db8::1"))
			second := f.requestFor(other)
			f.run()
			f.provider.results = []provider.Result{{Outcome: provider.Pending, Sent: true}, {Outcome: provider.Failed, Sent: true}}
			for _, id := range []string{first, second} {
				if _, _, _, err := f.Revoke(t.Context(), id, "owner"); err != nil {
					t.Fatal(err)
				}
				f.clock.Step(time.Millisecond)
			}
			for range 2 {
				if !runNext(t, f.Engine, f.clock.Now()) {
					t.Fatal("no step is due")
				}
			}
			if f.state(first) != api.Revoking || f.state(second) != api.Leaked {
				t.Fatalf("the first pod is %s, the second %s", f.state(first), f.state(second))
			}
			calls := len(f.provider.calls)
			f.requestFor(other)
			f.run()
			if diff := cmp.Diff([]provider.Op{provider.Revoke, provider.Grant}, f.provider.calls[calls:]); diff != "" {
				t.Error(diff)
			}
			if f.state(first) != api.Revoked || f.state(second) != api.Granted {
				t.Errorf("the first pod is %s, the second %s", f.state(first), f.state(second))
			}
		})
	}
}

// Otherwise the next pod with the address would wait for ever.
func TestAnAcceptedRevocationLeaksWhenItsTimeIsOver(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	f.updateProvider(func(p *api.Provider) { p.Retry.PollSeconds = 5 })
	first := f.requestFor(podRequest("a"))
	f.run()
	f.provider.outcome = provider.Pending
	second := f.requestFor(podRequest("b")) // the centre revokes the grant of pod a, without a deadline
	for until := f.clock.Now().Add(590 * time.Second); runNext(t, f.Engine, until); {
		continue
	}
	if f.state(first) != api.Revoking {
		t.Errorf("before pollTimeoutSeconds the first pod is %s, want Revoking", f.state(first))
	}
	for until := f.clock.Now().Add(20 * time.Second); runNext(t, f.Engine, until); {
		continue
	}
	grants, err := f.Store.View(t.Context()).Grants(first)
	if err != nil {
		t.Fatal(err)
	}
	if g := grants[0]; g.State != api.Leaked || g.Reason != lifecycle.ReasonDecisionTimeout || g.Due.IsZero() {
		t.Errorf("after pollTimeoutSeconds the grant is %s with reason %s, due %s", g.State, g.Reason, g.Due)
	}
	f.expectWaiting(second)
	f.acknowledge(first)
	f.provider.outcome = provider.Done
	f.run()
	if f.state(first) != api.Revoked || f.state(second) != api.Granted {
		t.Errorf("the first pod is %s, the second %s, want Revoked and Granted", f.state(first), f.state(second))
	}
}
