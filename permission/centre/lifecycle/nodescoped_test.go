package lifecycle_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

func nodeRequest(cluster, uid string) api.ApplicationRequest {
	return api.ApplicationRequest{Cluster: cluster, PodUID: uid, PodIPs: []string{"192.0.2.1"}, NodeIPs: []string{"192.0.2.1"}, HostNetwork: true, Set: "web"}
}

// requestOnNode requests the set of a pod with hostNetwork.
func (f *setsFixture) requestOnNode(uid string) string { return f.requestOnNodeOf("c1", uid) }

func (f *setsFixture) requestOnNodeOf(cluster, uid string) string {
	f.t.Helper()
	a, _, _, err := f.Request(f.t.Context(), nodeRequest(cluster, uid), "server")
	if err != nil {
		f.t.Fatal(err)
	}
	return a.ID
}

func (f *setsFixture) state(id string) api.State {
	f.t.Helper()
	a, err := f.Store.View(f.t.Context()).Application(id)
	if err != nil {
		f.t.Fatal(err)
	}
	return a.State
}

func (f *setsFixture) revokePod(uid string) { f.revokePodOf("c1", uid) }

func (f *setsFixture) revokePodOf(cluster, uid string) {
	f.t.Helper()
	if _, err := f.RevokePod(f.t.Context(), api.RevokeRequest{Cluster: cluster, PodUID: uid}, "controller"); err != nil {
		f.t.Fatal(err)
	}
}

// The provider revokes for the node, so it would also remove a grant that is made
// meanwhile for another pod of the node.
func TestANodeScopedGrantWaitsForARevocationInProgress(t *testing.T) {
	for name, accepted := range map[string]bool{"the provider is being called": false, "the provider has accepted the revocation": true} {
		t.Run(name, func(t *testing.T) {
			f := newSetsFixture(t, provider.Done)
			f.updateProvider(func(p *api.Provider) { p.NodeScoped, p.Retry.PollSeconds = true, 5 })
			first := f.requestOnNode("first")
			f.run()
			f.revokePod("first")
			var second string
			requestSecond := func() {
				f.provider.during = nil
				second = f.requestOnNode("second")
				if _, err := f.RunStep(t.Context(), "double"); err != nil || f.state(second) == api.Granted {
					t.Errorf("during the revocation the second pod is %s, %v", f.state(second), err)
				}
			}
			if accepted {
				f.provider.outcome = provider.Pending
			} else {
				f.provider.during = requestSecond
			}
			if !runNext(t, f.Engine, f.clock.Now()) {
				t.Fatal("no step is due")
			}
			if f.provider.outcome = provider.Done; accepted {
				requestSecond()
			}
			f.clock.Step(time.Second)
			f.run()
			if f.state(first) != api.Revoked || f.state(second) != api.Granted {
				t.Errorf("the first pod is %s, the second %s", f.state(first), f.state(second))
			}
			want := []provider.Op{provider.Grant, provider.Revoke, provider.Grant}
			if accepted {
				want = []provider.Op{provider.Grant, provider.Revoke, provider.Revoke, provider.Grant}
			}
			if diff := cmp.Diff(want, f.provider.calls); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The last pod of the node revokes the grant. A pod may end its own revocation without
// a call only if another pod will revoke later.
func TestANodeScopedGrantIsRevokedIfTheCallForTheLastPodIsDenied(t *testing.T) {
	for name, tc := range map[string]struct {
		// during: the first pod ends during the call for the second; otherwise after it.
		during bool
		second []provider.Result
	}{
		"the call is not sent":                      {true, []provider.Result{{Outcome: provider.Failed}}},
		"the call is denied":                        {true, []provider.Result{{Outcome: provider.Denied, Sent: true}}},
		"the request is denied by a later decision": {false, []provider.Result{{Outcome: provider.Pending, Sent: true}, {Outcome: provider.Denied, Sent: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newSetsFixture(t, provider.Done)
			f.updateProvider(func(p *api.Provider) { p.NodeScoped, p.Retry.PollSeconds, p.Retry.PollTimeoutSeconds = true, 5, 600 })
			first := f.requestOnNode("first")
			f.run()
			second := f.requestOnNode("second")
			endFirst := func() {
				f.provider.during = nil
				f.revokePod("first")
				if _, err := f.RunStep(t.Context(), "double"); err != nil {
					t.Error(err)
				}
			}
			if f.provider.results = tc.second; tc.during {
				f.provider.during = endFirst
			}
			if !runNext(t, f.Engine, f.clock.Now()) {
				t.Fatal("no step is due")
			}
			if !tc.during {
				endFirst()
			}
			f.run()
			f.revokePod("second")
			f.run()
			if f.state(first) != api.Revoked || f.state(second) != api.Revoked || !slices.Contains(f.provider.calls, provider.Revoke) {
				t.Errorf("the first pod is %s, the second %s after calls %v", f.state(first), f.state(second), f.provider.calls)
			}
		})
	}
}

// An exclusive call removes the privileges of other permissions, so none may be granted
// before it ends.
func TestNoPermissionOfAMySQLUserIsGrantedDuringAnExclusiveCall(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	f.updateProvider(func(p *api.Provider) { p.Type = api.ProviderMySQL })
	f.requestOnly("web")
	f.provider.during = func() {
		f.provider.during = nil
		f.requestOnly("jobs")
		if _, err := f.RunStep(t.Context(), "double"); err != nil || len(f.provider.calls) > 1 {
			t.Errorf("calls %v during an exclusive call, %v", f.provider.calls, err)
		}
	}
	f.run()
	if diff := cmp.Diff([]bool{true, false}, f.provider.exclusive); diff != "" {
		t.Error(diff)
	}
}

// After its cluster was renamed, nobody may revoke the application of a pod that runs on.
func TestANodeScopedGrantLeaksIfOnlyAPodOfAnotherClusterNameHasIt(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	f.updateProvider(func(p *api.Provider) { p.NodeScoped = true })
	former, first, last := f.requestOnNode("former"), f.requestOnNodeOf("c2", "first"), f.requestOnNodeOf("c2", "last")
	f.run()
	f.revokePodOf("c2", "first")
	f.run()
	if f.state(first) != api.Revoked {
		t.Errorf("the first pod is %s; the last pod of its cluster revokes the grant", f.state(first))
	}
	f.revokePodOf("c2", "last")
	f.run()
	if f.state(last) != api.Leaked || slices.Contains(f.provider.calls, provider.Revoke) {
		t.Errorf("the last pod is %s after calls %v", f.state(last), f.provider.calls)
	}
	f.revokePod("former")
	f.clock.Step(time.Hour)
	f.run()
	if f.state(former) != api.Revoked || f.state(last) != api.Revoked || !slices.Contains(f.provider.calls, provider.Revoke) {
		t.Errorf("the former pod is %s, the last pod %s after calls %v", f.state(former), f.state(last), f.provider.calls)
	}
}

// setModule changes the parameters of the permission.
func (f *setsFixture) setModule(module string) {
	f.t.Helper()
	updateObject(f.t, f.Store, store.KindPermission, "db", func(p *api.Permission) { p.Parameters = map[string]string{"module": module} })
}

// expectGrants checks the addresses and modules that the provider has granted.
func (f *setsFixture) expectGrants(when string, want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(f.provider.grants))); diff != "" {
		f.t.Errorf("%s: %s", when, diff)
	}
}

// Otherwise the first grant stays at the provider for ever: the last pod revokes only its own.
func TestANodeScopedGrantWithFormerParametersIsRevokedWithItsLastPod(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	f.updateProvider(func(p *api.Provider) { p.NodeScoped = true })
	f.setModule("old")
	first, second := f.requestOnNode("first"), f.requestOnNode("second")
	f.run()
	f.setModule("new")
	last := f.requestOnNode("last")
	f.run()
	f.expectGrants("with all pods", "192.0.2.1 new", "192.0.2.1 old")
	f.revokePod("first")
	f.run()
	f.expectGrants("after the first pod", "192.0.2.1 new", "192.0.2.1 old")
	f.revokePod("second")
	f.run()
	f.expectGrants("after the second pod", "192.0.2.1 new")
	f.revokePod("last")
	f.run()
	f.expectGrants("after the last pod")
	for _, id := range []string{first, second, last} {
		if state := f.state(id); state != api.Revoked {
			t.Errorf("an application is %s, want Revoked", state)
		}
	}
}

// The revocation of one set can begin before that of the other is requested.
func TestAGrantWithFormerParametersIsRevokedAlthoughAnotherSetHasThePermission(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	f.setModule("old")
	web := f.request("web")
	f.setModule("new")
	jobs := f.request("jobs")
	if state := f.revoke(web); state != api.Revoked {
		t.Errorf("the first set is %s, want Revoked", state)
	}
	f.expectGrants("after the first set", "10.0.0.1 new")
	if state := f.revoke(jobs); state != api.Revoked {
		t.Errorf("the last set is %s, want Revoked", state)
	}
	f.expectGrants("after the last set")
}

// A call for all addresses of the first pod would remove the grant of the last one.
func TestANodeScopedGrantForMoreAddressesIsRevokedAfterTheLastPod(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	f.updateProvider(func(p *api.Provider) { p.NodeScoped = true })
	request := func(uid string, nodeIPs ...string) string {
		a, _, _, err := f.Request(t.Context(), api.ApplicationRequest{Cluster: "c1", PodUID: uid, PodIPs: []string{"192.0.2.1"}, NodeIPs: nodeIPs, HostNetwork: true, Set: "web"}, "server")
		if err != nil {
			t.Fatal(err)
		}
		return a.ID
	}
	covered, first, last := request("covered", "192.0.2.1"), request("first", "192.0.2.1", "2001:db8::1"), request("last", "192.0.2.1")
	f.run()
	f.revokePod("covered")
	f.revokePod("first")
	f.run()
	f.expectGrants("after the first pod", "192.0.2.1 ", "2001:db8::1 ")
	if f.state(covered) != api.Revoked || f.state(first) != api.Leaked {
		t.Errorf("the covered application is %s, want Revoked, and the first one %s, want Leaked", f.state(covered), f.state(first))
	}
	f.revokePod("last")
	f.run()
	f.clock.Step(time.Hour)
	f.run()
	f.expectGrants("after the last pod")
	if f.state(first) != api.Revoked || f.state(last) != api.Revoked {
		t.Errorf("the first application is %s, the last one %s, want Revoked", f.state(first), f.state(last))
	}
}

// The first address is that of a provider that has one for each grant. A node may list its addresses in another order later.
func TestACallHasEachAddressOnceInTheOrderOfText(t *testing.T) {
	unordered, want := []string{"fd00::2", "10.0.0.9", "10.0.0.10", "10.0.0.9"}, []string{"10.0.0.10", "10.0.0.9", "fd00::2"}
	for name, tc := range map[string]struct {
		nodeScoped bool
		request    api.ApplicationRequest
	}{
		"of a pod":  {false, api.ApplicationRequest{Cluster: "c1", PodUID: "a", PodIPs: unordered, Set: "web"}},
		"of a node": {true, api.ApplicationRequest{Cluster: "c1", PodUID: "a", PodIPs: []string{"192.0.2.1"}, NodeIPs: unordered, Set: "web"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newSetsFixture(t, provider.Done)
			f.updateProvider(func(p *api.Provider) { p.NodeScoped = tc.nodeScoped })
			f.requestFor(tc.request)
			f.run()
			if diff := cmp.Diff(want, f.provider.ips); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A call of a provider that is not node-scoped would have the address of the node as that of the pod.
func TestANewAttemptOfAPodWithHostNetworkRequiresNodeScopedProviders(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	f.updateProvider(func(p *api.Provider) { p.NodeScoped = true })
	id := f.requestOnNode("a")
	f.run()
	if state := f.revoke(id); state != api.Revoked {
		t.Fatalf("the application is %s, want Revoked", state)
	}
	f.updateProvider(func(p *api.Provider) { p.NodeScoped = false })
	_, _, _, err := f.Request(t.Context(), nodeRequest("c1", "a"), "server")
	if invalid := (lifecycle.InvalidRequest{}); !errors.As(err, &invalid) || invalid.Field != "hostNetwork" {
		t.Errorf("the request returned %v, want an error of field hostNetwork", err)
	}
	if state := f.state(id); state != api.Revoked {
		t.Errorf("the application is %s, want Revoked", state)
	}
}

// The revocation of another pod must find the grant of the moved permission: it would remove it.
func TestAPermissionThatMovedToANodeScopedProviderIsGrantedToTheNode(t *testing.T) {
	for name, move := range map[string]func(*setsFixture) (provider string){
		"to another provider": func(f *setsFixture) string {
			p := api.Provider{Meta: api.Meta{Name: "nodes", Owner: "platform"}, NodeScoped: true, CanRevoke: true, TimeoutSeconds: 1, Retry: api.Retry{MaxCalls: 1, BackoffSeconds: 2}}
			createObject(f.t, f.Store, store.KindProvider, p.Meta, p)
			updateObject(f.t, f.Store, store.KindPermission, "db", func(p *api.Permission) { p.Provider = "nodes" })
			return "nodes"
		},
		"with its provider": func(f *setsFixture) string {
			f.updateProvider(func(p *api.Provider) { p.NodeScoped = true })
			return "double"
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newSetsFixture(t, provider.Denied)
			request := func(uid, ip string) string {
				return f.requestFor(api.ApplicationRequest{Cluster: "c1", PodUID: uid, PodIPs: []string{ip}, NodeIPs: []string{"192.0.2.1"}, Set: "web"})
			}
			first := request("first", "10.0.0.1")
			f.run()
			if state := f.state(first); state != api.Denied {
				t.Fatalf("the first pod is %s, want Denied", state)
			}
			of := move(f)
			step := func() {
				if _, err := f.RunStep(t.Context(), of); err != nil {
					t.Fatal(err)
				}
			}
			f.provider.outcome, f.provider.grants = provider.Done, map[string]bool{}
			if _, _, _, err := f.Reset(t.Context(), first, "owner"); err != nil {
				t.Fatal(err)
			}
			step()
			second := request("second", "10.0.0.2")
			step()
			if f.state(first) != api.Granted || f.state(second) != api.Granted {
				t.Fatalf("the first pod is %s, the second %s, want Granted", f.state(first), f.state(second))
			}
			f.revokePod("second")
			step()
			f.expectGrants("after the second pod", "192.0.2.1 ")
			f.revokePod("first")
			step()
			f.expectGrants("after both pods")
			if f.state(first) != api.Revoked || f.state(second) != api.Revoked {
				t.Errorf("the first pod is %s, the second %s, want Revoked", f.state(first), f.state(second))
			}
		})
	}
}

// A database drops the user with the last pod or set. Until then, the user keeps the privileges of all of them.
func TestAGrantOfADatabaseIsNotRevokedBeforeItsPrivileges(t *testing.T) {
	parameters := func(database, table, privileges string) map[string]string {
		return map[string]string{"user": "app", "database": database, "table": table, "privileges": privileges}
	}
	before := parameters("shop", "", "SELECT,DELETE")
	for name, tc := range map[string]struct {
		last map[string]string
		want api.State
	}{
		"the same privileges": {parameters("shop", "*", "delete, select"), api.Revoked},
		"more privileges":     {parameters("shop", "", "SELECT,DELETE,INSERT"), api.Revoked},
		"fewer privileges":    {parameters("shop", "", "SELECT"), api.Leaked},
		"another database":    {parameters("stock", "", "SELECT,DELETE"), api.Leaked},
		"another table":       {parameters("shop", "orders", "SELECT,DELETE"), api.Leaked},
	} {
		for of, pods := range map[string][]string{"another pod of the node": {"first", "last"}, "another set of the pod": {"pod", "pod"}} {
			t.Run(name+" of "+of, func(t *testing.T) {
				f := newSetsFixture(t, provider.Done)
				f.updateProvider(func(p *api.Provider) { p.Type, p.NodeScoped = api.ProviderMySQL, true })
				request := func(i int, parameters map[string]string) string {
					updateObject(t, f.Store, store.KindPermission, "db", func(p *api.Permission) { p.Parameters = parameters })
					r := nodeRequest("c1", pods[i])
					r.Set = []string{"web", "jobs"}[i]
					id := f.requestFor(r)
					f.run()
					return id
				}
				first, last := request(0, before), request(1, tc.last)
				if state := f.revoke(first); state != tc.want || slices.Contains(f.provider.calls, provider.Revoke) {
					t.Errorf("the first grant is %s after calls %v, want %s", state, f.provider.calls, tc.want)
				}
				if state := f.revoke(last); state != api.Revoked || !slices.Contains(f.provider.calls, provider.Revoke) {
					t.Errorf("the last grant is %s after calls %v", state, f.provider.calls)
				}
				f.clock.Step(time.Hour)
				f.run()
				if state := f.state(first); state != api.Revoked {
					t.Errorf("the first grant is %s after the last one, want Revoked", state)
				}
			})
		}
	}
}

// A pod that ends revokes its sets one after the other.
func TestTheSetsOfAPodThatEndsDoNotLeakBecauseOfOneAnother(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	f.updateProvider(func(p *api.Provider) { p.Type = api.ProviderMySQL })
	web := f.request("web")
	updateObject(t, f.Store, store.KindPermission, "db", func(p *api.Permission) { p.Parameters = map[string]string{"database": "stock"} })
	jobs := f.request("jobs")
	for _, id := range []string{web, jobs} {
		if _, _, _, err := f.Revoke(t.Context(), id, "controller"); err != nil {
			t.Fatal(err)
		}
		if runNext(t, f.Engine, f.clock.Now()); f.state(id) == api.Leaked {
			t.Errorf("application %s is Leaked", id)
		}
	}
	f.run()
	if f.state(web) != api.Revoked || f.state(jobs) != api.Revoked {
		t.Errorf("the sets are %s and %s, want Revoked", f.state(web), f.state(jobs))
	}
}

// The grant is in use, so it is no leak.
func TestAGrantThatCannotBeRevokedLeaksWithItsLastPodOrSet(t *testing.T) {
	for name, tc := range map[string]struct {
		nodeScoped bool
		request    func(f *setsFixture) (first, last string)
		reason     string
	}{
		"pods of a node": {true, func(f *setsFixture) (string, string) { return f.requestOnNode("first"), f.requestOnNode("last") }, lifecycle.ReasonHeldByAnotherPodOnNode},
		"sets of a pod":  {false, func(f *setsFixture) (string, string) { return f.request("web"), f.request("jobs") }, lifecycle.ReasonHeldByAnotherSet},
	} {
		t.Run(name, func(t *testing.T) {
			f := newSetsFixture(t, provider.Done)
			f.updateProvider(func(p *api.Provider) { p.CanRevoke, p.NodeScoped = false, tc.nodeScoped })
			first, last := tc.request(f)
			f.run()
			f.revoke(first)
			if a, err := f.Store.View(t.Context()).Application(first); err != nil || a.State != api.Revoked || a.Reason != tc.reason {
				t.Errorf("the first application is %s with reason %s, %v, want Revoked with reason %s", a.State, a.Reason, err, tc.reason)
			}
			f.revoke(last)
			if a, err := f.Store.View(t.Context()).Application(last); err != nil || a.State != api.Leaked || a.Reason != lifecycle.ReasonProviderCannotRevoke {
				t.Errorf("the last application is %s with reason %s, %v, want Leaked", a.State, a.Reason, err)
			}
		})
	}
}
