package lifecycle_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// newPerAddressFixture has a provider with one grant for each address, and set other with another permission of it.
func newPerAddressFixture(t *testing.T) *setsFixture {
	t.Helper()
	f := newSetsFixture(t, provider.Done)
	f.provider.perAddress = true
	createObject(t, f.Store, store.KindPermission, api.Meta{Name: "other", Owner: "team-a"},
		api.Permission{Meta: api.Meta{Name: "other", Owner: "team-a"}, Provider: "double", Parameters: map[string]string{"module": "other"}})
	createObject(t, f.Store, store.KindSet, api.Meta{Name: "other", Owner: "team-a"},
		api.PermissionSet{Meta: api.Meta{Name: "other", Owner: "team-a"}, Permissions: []string{"other"}, Pods: []api.PodPattern{{Namespace: "*"}}})
	return f
}

func TestALeakDoesNotRemoveAnotherPermissionThatTheProviderCannotDistinguish(t *testing.T) {
	f := newPerAddressFixture(t)
	first := f.requestFor(podRequest("a"))
	f.run()
	f.provider.outcome = provider.Failed // with one call, the grant is Leaked
	f.revokePod("a")
	if !runNext(t, f.Engine, f.clock.Now()) || f.state(first) != api.Leaked {
		t.Fatalf("the application is %s, want Leaked", f.state(first))
	}
	f.provider.outcome = provider.Done
	next := podRequest("b")
	next.Set = "other"
	second := f.requestFor(next)
	for until := f.clock.Now().Add(time.Hour); runNext(t, f.Engine, until); {
		continue
	}
	f.expectGrants("after an hour", "10.0.0.1")
	if f.state(first) != api.Leaked || f.state(second) != api.Granted {
		t.Errorf("the first pod is %s, the second %s, want Leaked and Granted", f.state(first), f.state(second))
	}
	f.revokePod("b")
	f.run()
	f.expectGrants("after the second pod")
	if f.state(first) != api.Revoked || f.state(second) != api.Revoked {
		t.Errorf("the first pod is %s, the second %s, want Revoked", f.state(first), f.state(second))
	}
}

func TestASetDoesNotRemoveAnotherPermissionThatTheProviderCannotDistinguish(t *testing.T) {
	f := newPerAddressFixture(t)
	web, other := f.request("web"), f.request("other")
	if state := f.revoke(web); state != api.Revoked {
		t.Errorf("the first set is %s, want Revoked", state)
	}
	f.expectGrants("after the first set", "10.0.0.1")
	if state := f.revoke(other); state != api.Revoked {
		t.Errorf("the last set is %s, want Revoked", state)
	}
	f.expectGrants("after the last set")
}

// The decision about the other set decides whether the grant is still needed.
func TestASetDoesNotRemoveAPendingPermissionThatTheProviderCannotDistinguish(t *testing.T) {
	for name, tc := range map[string]struct {
		first, second provider.Outcome
		maxCalls      int
		other, web    api.State // before the second outcome
		calls         int
	}{
		"pending, then granted":              {provider.Pending, provider.Done, 2, api.Applying, api.Revoking, 0},
		"pending, then denied":               {provider.Pending, provider.Denied, 2, api.Applying, api.Revoking, 1},
		"an unknown result, then granted":    {provider.Failed, provider.Done, 2, api.Applying, api.Revoking, 0},
		"failed, then granted after a reset": {provider.Failed, provider.Done, 1, api.Failed, api.Leaked, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newPerAddressFixture(t)
			f.updateProvider(func(p *api.Provider) {
				p.Retry.PollSeconds, p.Retry.MaxCalls, p.Retry.BackoffSeconds = 5, tc.maxCalls, 100 // the second call is after 150 s
			})
			web := f.request("web")
			f.provider.outcome = tc.first
			other := f.request("other")
			if f.state(other) != tc.other {
				t.Fatalf("the other set is %s, want %s", f.state(other), tc.other)
			}
			if state := f.revoke(web); state != tc.web || slices.Contains(f.provider.calls, provider.Revoke) {
				t.Errorf("before the decision the set is %s after calls %v, want %s", state, f.provider.calls, tc.web)
			}
			f.provider.outcome, f.provider.calls = provider.Done, nil
			f.provider.results = []provider.Result{{Outcome: tc.second, Sent: true}}
			if tc.other == api.Failed {
				if _, _, _, err := f.Reset(t.Context(), other, "owner"); err != nil {
					t.Fatal(err)
				}
			}
			f.run()
			f.clock.Step(time.Hour)
			f.run()
			if f.state(web) != api.Revoked || f.revocations() != tc.calls {
				t.Errorf("after the decision the set is %s after calls %v, want Revoked", f.state(web), f.provider.calls)
			}
			if tc.second == provider.Done && f.state(other) != api.Granted {
				t.Errorf("the other set is %s, want Granted", f.state(other))
			}
		})
	}
}

// revocations counts the calls to revoke.
func (f *setsFixture) revocations() (n int) {
	for _, op := range f.provider.calls {
		if op == provider.Revoke {
			n++
		}
	}
	return n
}

// The decision gives the id of the other grant, which decides whether it is the same one.
func TestARevocationByIDWaitsForAPendingGrantOfAnotherPodOnTheNode(t *testing.T) {
	for id, calls := range map[json.Number]int{"7": 0, "8": 1} {
		t.Run("7, then "+string(id), func(t *testing.T) {
			f := newSetsFixture(t, provider.Done)
			f.updateProvider(func(p *api.Provider) { p.NodeScoped, p.Retry.PollSeconds = true, 5 })
			done := func(id json.Number) []provider.Result {
				return []provider.Result{{Outcome: provider.Done, Sent: true, Kept: map[string]any{"id": id}}}
			}
			f.provider.results = done("7")
			first := f.requestOnNode("a")
			f.run()
			f.provider.results = []provider.Result{{Outcome: provider.Pending, Sent: true}}
			second := f.requestOnNode("b")
			if !runNext(t, f.Engine, f.clock.Now()) || f.state(second) != api.Applying {
				t.Fatalf("the second pod is %s, want Applying", f.state(second))
			}
			f.revokePod("a")
			if !runNext(t, f.Engine, f.clock.Now()) || f.state(first) != api.Revoking || f.revocations() != 0 {
				t.Errorf("before the decision the first pod is %s after calls %v, want Revoking", f.state(first), f.provider.calls)
			}
			f.provider.results = done(id)
			f.run()
			if f.state(first) != api.Revoked || f.state(second) != api.Granted || f.revocations() != calls {
				t.Errorf("after the decision the first pod is %s, the second %s after calls %v, want Revoked and Granted", f.state(first), f.state(second), f.provider.calls)
			}
		})
	}
}

// A node can have many pods, and a comparison evaluates all templates of the request.
func TestAStepComparesTheRequestsOfEqualPermissionsOnce(t *testing.T) {
	f := newPerAddressFixture(t)
	f.updateProvider(func(p *api.Provider) { p.NodeScoped = true })
	for _, uid := range []string{"a", "b", "c", "d"} {
		f.requestOnNode(uid)
	}
	f.run()
	if n := f.comparisonsOfOther(); n != 1 {
		t.Errorf("%d comparisons, want 1", n)
	}
}

// comparisonsOfOther counts the comparisons of requests in the first step of permission other on the node.
func (f *setsFixture) comparisonsOfOther() int {
	other := nodeRequest("c1", "other")
	other.Set = "other"
	f.requestFor(other)
	f.provider.compared = 0
	f.run()
	return f.provider.compared
}

// A template may write a string with quotation marks.
func TestAStepComparesTheRequestsOfPermissionsWhoseKeptValuesDifferInType(t *testing.T) {
	f := newPerAddressFixture(t)
	f.updateProvider(func(p *api.Provider) { p.NodeScoped = true })
	for uid, id := range map[string]any{"a": json.Number("7"), "b": "7"} {
		f.provider.results = []provider.Result{{Outcome: provider.Done, Sent: true, Kept: map[string]any{"id": id}}}
		f.requestOnNode(uid)
		f.run()
	}
	// Each grant is compared with and without its kept value, which the other grant does not have.
	if n := f.comparisonsOfOther(); n != 4 {
		t.Errorf("%d comparisons, want 4", n)
	}
}
