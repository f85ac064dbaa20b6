package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	clocktest "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// recordingProvider answers with outcome and records the operations.
type recordingProvider struct {
	outcome provider.Outcome
	// results are the first results, instead of outcome.
	results []provider.Result
	calls   []provider.Op
	// exclusive says which of the calls are exclusive.
	exclusive []bool
	// parameters and ips are those of the last call, grants the addresses with the module that the calls
	// have granted and not revoked.
	parameters map[string]string
	ips        []string
	grants     map[string]bool
	// perAddress: it has one grant for each address, whatever the parameters are.
	perAddress bool
	// compared counts the comparisons of requests.
	compared int
	// during is called in each call, and before, if set, before each step starts.
	during, before func()
}

func (p *recordingProvider) Client(api.Provider) (provider.Client, error) {
	if p.before != nil {
		p.before()
	}
	return p, nil
}

func (p *recordingProvider) Call(_ context.Context, c provider.Call) provider.Result {
	p.calls, p.exclusive = append(p.calls, c.Op), append(p.exclusive, c.Exclusive)
	p.parameters, p.ips = c.Parameters, c.IPs
	for _, ip := range c.IPs {
		grant := ip
		if !p.perAddress {
			grant += " " + c.Parameters["module"]
		}
		p.grants[grant] = c.Op != provider.Revoke
	}
	maps.DeleteFunc(p.grants, func(_ string, granted bool) bool { return !granted })
	if p.during != nil {
		p.during()
	}
	if len(p.results) > 0 {
		r := p.results[0]
		p.results = p.results[1:]
		return r
	}
	return provider.Result{Outcome: p.outcome, Sent: true}
}

// SameRequest compares revocations of grants with different parameters or kept values.
func (p *recordingProvider) SameRequest(context.Context, provider.Call, provider.Call) bool {
	p.compared++
	return p.perAddress
}

// setsFixture has sets web and jobs of one permission.
type setsFixture struct {
	*lifecycle.Engine
	t        *testing.T
	clock    *clocktest.FakeClock
	provider *recordingProvider
}

func newSetsFixture(t *testing.T, outcome provider.Outcome) *setsFixture {
	t.Helper()
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "centre.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	clock := clocktest.NewFakeClock(time.Unix(1_700_000_000, 0).UTC())
	p := &recordingProvider{outcome: outcome, grants: map[string]bool{}}
	register(t, s, api.Provider{Meta: api.Meta{Name: "double", Owner: "platform"}, CanRevoke: true, TimeoutSeconds: 1, Retry: api.Retry{MaxCalls: 1, BackoffSeconds: 2, PollTimeoutSeconds: 600}})
	body, err := json.Marshal(api.PermissionSet{Meta: api.Meta{Name: "jobs", Owner: "team-a"}, Permissions: []string{"db"}, Pods: []api.PodPattern{{Namespace: "*"}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), func(tx store.Tx) error {
		return tx.Create(store.Object{Kind: store.KindSet, Name: "jobs", Owner: "team-a", Body: body, Version: 1})
	}); err != nil {
		t.Fatal(err)
	}
	return &setsFixture{t: t, clock: clock, provider: p, Engine: &lifecycle.Engine{Store: s, Limiter: noLimits{clock}, Breaker: noLimits{clock},
		Clients: p, Clock: clock, Random: func() float64 { return 0.5 }, Notifier: noLimits{clock}, Metrics: noLimits{clock}, Log: slog.New(slog.DiscardHandler)}}
}

// request requests a set for the pod and runs the steps of the next minute.
func (f *setsFixture) request(set string) string {
	f.t.Helper()
	a, _, _, err := f.Request(f.t.Context(), api.ApplicationRequest{Cluster: "c1", Namespace: "shop", Pod: "web", PodUID: "uid", PodIPs: []string{"10.0.0.1"}, Set: set}, "server")
	if err != nil {
		f.t.Fatal(err)
	}
	f.run()
	return a.ID
}

// updateProvider changes the provider.
func (f *setsFixture) updateProvider(change func(*api.Provider)) {
	f.t.Helper()
	updateProvider(f.t, f.Store, "double", change)
}

func (f *setsFixture) run() {
	f.t.Helper()
	for until := f.Clock.Now().Add(time.Minute); ; {
		if !runNext(f.t, f.Engine, until) {
			return
		}
	}
}

// revoke revokes an application, runs the steps and returns its state.
func (f *setsFixture) revoke(id string) api.State {
	f.t.Helper()
	if _, _, _, err := f.Revoke(f.t.Context(), id, "owner"); err != nil {
		f.t.Fatal(err)
	}
	f.run()
	a, err := f.Store.View(f.t.Context()).Application(id)
	if err != nil {
		f.t.Fatal(err)
	}
	return a.State
}

func TestAPermissionIsRevokedWithTheLastSetOfThePod(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	web, jobs := f.request("web"), f.request("jobs")
	if state := f.revoke(web); state != api.Revoked || slices.Contains(f.provider.calls, provider.Revoke) {
		t.Errorf("the first set is %s after calls %v", state, f.provider.calls)
	}
	if state := f.revoke(jobs); state != api.Revoked || !slices.Contains(f.provider.calls, provider.Revoke) {
		t.Errorf("the last set is %s after calls %v", state, f.provider.calls)
	}
}

func TestADeniedApplicationIsRevokedWithoutItsProvider(t *testing.T) {
	f := newSetsFixture(t, provider.Denied)
	id := f.request("web")
	if err := f.Store.Write(t.Context(), func(tx store.Tx) error { return tx.Delete(store.KindProvider, "double", 1) }); err != nil {
		t.Fatal(err)
	}
	if state := f.revoke(id); state != api.Revoked {
		t.Errorf("the application is %s", state)
	}
}

func TestAProviderThatMayHaveGrantedIsInUseAfterADenial(t *testing.T) {
	f := newSetsFixture(t, provider.Failed)
	id := f.request("web")
	f.provider.outcome = provider.Denied
	if _, _, _, err := f.Reset(t.Context(), id, "owner"); err != nil {
		t.Fatal(err)
	}
	f.run()
	if a, err := f.Store.View(t.Context()).Application(id); err != nil || a.State != api.Denied {
		t.Fatalf("the application is %s, %v", a.State, err)
	}
	if n, err := f.Store.View(t.Context()).CountUnrevoked("double"); err != nil || n != 1 {
		t.Errorf("%d grants, %v", n, err)
	}
	f.provider.outcome = provider.Done
	f.revoke(id)
	if n, err := f.Store.View(t.Context()).CountUnrevoked("double"); err != nil || n != 0 {
		t.Errorf("%d grants after the revocation, %v", n, err)
	}
}

// A revocation of the new parameters has to remove what may exist of the previous ones.
func TestAnAttemptAfterAPartUsesCorrectedParametersOfTheSameUserOfADatabase(t *testing.T) {
	before := map[string]string{"user": "app", "database": "shop_oders"}
	for name, tc := range map[string]struct {
		provider  api.ProviderType
		corrected map[string]string
		uses      bool
	}{
		"another database, the same user":                {api.ProviderMySQL, map[string]string{"user": "app", "database": "shop_orders"}, true},
		"another user":                                   {api.ProviderMySQL, map[string]string{"user": "app2", "database": "shop_oders"}, false},
		"a provider that reads all parameters to revoke": {api.ProviderHTTP, map[string]string{"user": "app", "database": "shop_orders"}, false},
	} {
		for outcome, result := range map[string]provider.Result{
			"denied": {Outcome: provider.Denied, Sent: true, Partial: true}, "failed": {Outcome: provider.Failed, Sent: true},
		} {
			t.Run(name+", "+outcome, func(t *testing.T) {
				f := newSetsFixture(t, provider.Done)
				f.updateProvider(func(p *api.Provider) { p.Type = tc.provider })
				correct := func(parameters map[string]string) {
					updateObject(t, f.Store, store.KindPermission, "db", func(p *api.Permission) { p.Parameters = parameters })
				}
				correct(before)
				f.provider.results = []provider.Result{result}
				id := f.request("web")
				correct(tc.corrected)
				if _, _, _, err := f.Reset(t.Context(), id, "owner"); err != nil {
					t.Fatal(err)
				}
				f.run()
				want := before
				if tc.uses && outcome == "denied" { // a failed call may have granted the privileges of before
					want = tc.corrected
				}
				if !maps.Equal(f.provider.parameters, want) {
					t.Errorf("the attempt uses %v, want %v", f.provider.parameters, want)
				}
				if state := f.revoke(id); state != api.Revoked || !maps.Equal(f.provider.parameters, want) {
					t.Errorf("%s with %v, want %v", state, f.provider.parameters, want)
				}
			})
		}
	}
}

// The run of a step expires only after the timeout of the provider.
func TestAStepInACallIsNotRunByAnotherReplica(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	f.provider.during = func() {
		f.clock.Step(5 * time.Second)
		if ran, err := f.RunStep(t.Context(), "double"); ran || err != nil {
			t.Errorf("another replica ran a step: %t, %v", ran, err)
		}
	}
	id := f.request("web")
	if a, err := f.Store.View(t.Context()).Application(id); err != nil || a.State != api.Granted || len(f.provider.calls) != 1 {
		t.Errorf("the application is %s after calls %v, %v", a.State, f.provider.calls, err)
	}
}

func TestALeakIsNotAcknowledgedWhileItsProviderIsCalled(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	id := f.request("web")
	f.provider.outcome = provider.Failed // with one call, the grant is Leaked
	if state := f.revoke(id); state != api.Leaked {
		t.Fatalf("the application is %s", state)
	}
	f.provider.during = func() {
		f.provider.during = nil
		if _, _, err := f.Acknowledge(t.Context(), id, "owner", func(store.Grant) error { return nil }); !errors.Is(err, lifecycle.ErrCallActive) {
			t.Errorf("acknowledged during the call: %v", err)
		}
	}
	for f.provider.during != nil {
		if !runNext(t, f.Engine, f.clock.Now().Add(2*time.Hour)) {
			t.Fatal("the leak is not retried")
		}
	}
	if a, _, err := f.Acknowledge(t.Context(), id, "owner", func(store.Grant) error { return nil }); err != nil || a.State != api.Revoked {
		t.Errorf("after the call: %s, %v", a.State, err)
	}
	if runNext(t, f.Engine, f.clock.Now().Add(2*time.Hour)) {
		t.Error("an acknowledged leak is retried")
	}
}

// The pod must not wait for Leaked: the application already has this state.
func TestTheRejectionOfALeakedApplicationNamesItsReason(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	id := f.request("web")
	f.provider.outcome = provider.Failed // with one call, the grant is Leaked
	if state := f.revoke(id); state != api.Leaked {
		t.Fatalf("the application is %s", state)
	}
	if _, _, _, err := f.Reset(t.Context(), id, "owner"); !errors.Is(err, lifecycle.ErrResetAfterRevocation) {
		t.Errorf("a reset: %v", err)
	}
	app, err := f.Store.View(t.Context()).Application(id)
	if err != nil {
		t.Fatal(err)
	}
	f.provider.during = func() {
		f.provider.during = nil
		if _, _, _, err := f.Request(t.Context(), app.Request, "server"); !errors.Is(err, lifecycle.ErrCallActive) {
			t.Errorf("a request of the pod during the call: %v", err)
		}
	}
	for f.provider.during != nil {
		if !runNext(t, f.Engine, f.clock.Now().Add(2*time.Hour)) {
			t.Fatal("the leak is not retried")
		}
	}
}

// A grant of another owner may leak between the request and its transaction.
func TestALeakIsAcknowledgedOnlyIfTheUserIsAuthorizedInTheTransaction(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	id := f.request("web")
	f.provider.outcome = provider.Failed
	f.revoke(id)
	forbidden := errors.New("forbidden")
	_, _, err := f.Acknowledge(t.Context(), id, "owner", func(g store.Grant) error {
		if g.State != api.Leaked || g.Owner != "team-a" {
			t.Errorf("authorized for %+v", g)
		}
		return forbidden
	})
	if a, loadErr := f.Store.View(t.Context()).Application(id); !errors.Is(err, forbidden) || loadErr != nil || a.State != api.Leaked {
		t.Errorf("%v; the application is %s, %v", err, a.State, loadErr)
	}
}
