package lifecycle_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	clocktest "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/queue"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// recordingProvider answers with outcome and records the operations.
type recordingProvider struct {
	outcome provider.Outcome
	calls   []provider.Op
	// during is called in each call.
	during func()
}

func (p *recordingProvider) New(api.Provider) (provider.Client, error) { return p, nil }

func (p *recordingProvider) Call(_ context.Context, c provider.Call) provider.Result {
	p.calls = append(p.calls, c.Op)
	if p.during != nil {
		p.during()
	}
	return provider.Result{Outcome: p.outcome, Sent: true}
}

// setsFixture has sets web and jobs of one permission.
type setsFixture struct {
	*lifecycle.Engine
	t        *testing.T
	jobs     *fakeQueue
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
	p, jobs := &recordingProvider{outcome: outcome}, &fakeQueue{clock: clock}
	register(t, s, api.Provider{Meta: api.Meta{Name: "double", Owner: "platform"}, CanRevoke: true, TimeoutSeconds: 1, Retry: api.Retry{MaxCalls: 1, BackoffSeconds: 2}})
	body, err := json.Marshal(api.PermissionSet{Meta: api.Meta{Name: "jobs", Owner: "team-a"}, Permissions: []string{"db"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), func(tx store.Tx) error {
		return tx.Create(store.Object{Kind: store.KindSet, Name: "jobs", Owner: "team-a", Body: body, Version: 1})
	}); err != nil {
		t.Fatal(err)
	}
	return &setsFixture{t: t, jobs: jobs, provider: p, Engine: &lifecycle.Engine{Store: s, Queue: jobs, Limiter: noLimits{clock}, Breaker: noLimits{clock},
		Clients: p, Clock: clock, Random: func() float64 { return 0.5 }, Notifier: noLimits{clock}, Metrics: noLimits{clock}, Log: slog.New(slog.DiscardHandler)}}
}

// request requests a set for the pod and runs the jobs of the next minute.
func (f *setsFixture) request(set string) string {
	f.t.Helper()
	a, _, _, err := f.Request(f.t.Context(), api.ApplicationRequest{Cluster: "c1", Namespace: "shop", Pod: "web", PodUID: "uid", PodIPs: []string{"10.0.0.1"}, Set: set}, "server")
	if err != nil {
		f.t.Fatal(err)
	}
	f.run()
	return a.ID
}

func (f *setsFixture) run() {
	f.t.Helper()
	for until := f.Clock.Now().Add(time.Minute); ; {
		job, ok := f.jobs.next(until)
		if !ok {
			return
		}
		if err := f.Handle(f.t.Context(), job); err != nil {
			f.t.Fatal(err)
		}
	}
}

// revoke revokes an application, runs the jobs and returns its state.
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

// openBreaker is a breaker that is open.
type openBreaker struct{ noLimits }

func (openBreaker) OpenFor(string) time.Duration { return 15 * time.Second }

// River runs a job again if it takes too long.
func TestAStepInACallIsNotPostponedByAnotherWorker(t *testing.T) {
	f := newSetsFixture(t, provider.Done)
	other := *f.Engine
	other.Breaker = openBreaker{}
	f.provider.during = func() {
		a, err := f.Store.View(t.Context()).Applications(store.Filter{}, store.Page{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Handle(t.Context(), queue.Job{Application: a[0].ID, Step: 1}); err != nil {
			t.Error(err)
		}
	}
	id := f.request("web")
	if a, err := f.Store.View(t.Context()).Application(id); err != nil || a.State != api.Granted || len(f.provider.calls) != 1 {
		t.Errorf("the application is %s after calls %v, %v", a.State, f.provider.calls, err)
	}
}
