package lifecycle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	clocktest "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/ratelimit"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// runNext runs the first step if it is due before a time, and sets the clock to its due
// time.
func runNext(t *testing.T, e *lifecycle.Engine, before time.Time) bool {
	t.Helper()
	next, err := e.Store.View(t.Context()).NextDue()
	if err != nil {
		t.Fatal(err)
	}
	due, ok := next["double"]
	if !ok || due.After(before) {
		return false
	}
	if clock := e.Clock.(*clocktest.FakeClock); due.After(clock.Now()) {
		clock.SetTime(due)
	}
	if ran, err := e.RunStep(t.Context(), "double"); err != nil || !ran {
		t.Fatalf("a step is due at %s: ran %t, %v", due, ran, err)
	}
	return true
}

// noLimits is a rate limiter without limit and a breaker that stays closed; it
// discards notifications and metrics.
type noLimits struct{ clock *clocktest.FakeClock }

func (o noLimits) Begin(store.Tx, string, api.RateLimit) (*ratelimit.Slots, error) {
	return ratelimit.NewSlots(o.clock.Now(), o.clock.Now(), 0, func(time.Time) error { return nil }), nil
}
func (o noLimits) Reserve(context.Context, string, api.RateLimit, time.Duration) (time.Time, error) {
	return o.clock.Now(), nil
}
func (o noLimits) Expired(time.Time) bool                                   { return false }
func (o noLimits) DownSince(string) time.Time                               { return time.Time{} }
func (o noLimits) OpenFor(string) time.Duration                             { return 0 }
func (o noLimits) Do(_ string, call func() bool) bool                       { call(); return true }
func (o noLimits) Notify(string)                                            {}
func (o noLimits) GrantState(string, string, api.State)                     {}
func (o noLimits) LeakedGrantAtNewPod(string)                               {}
func (o noLimits) PodReportPage(string, string)                             {}
func (o noLimits) Call(string, provider.Op, provider.Result, time.Duration) {}

// fakeProvider fails until downUntil.
type fakeProvider struct {
	clock     *clocktest.FakeClock
	downUntil time.Time
	calls     map[string][]time.Time // by application
}

func (o *fakeProvider) Client(api.Provider) (provider.Client, error) { return o, nil }

func (o *fakeProvider) Call(_ context.Context, c provider.Call) provider.Result {
	o.calls[c.Application] = append(o.calls[c.Application], o.clock.Now())
	if o.clock.Now().Before(o.downUntil) {
		return provider.Result{Outcome: provider.Failed, Reason: provider.ReasonProviderError, Message: "down", Sent: true}
	}
	return provider.Result{Outcome: provider.Done, Reason: provider.ReasonGranted, Sent: true}
}

// register registers a set of one permission.
func register(t *testing.T, s *store.Store, p api.Provider) {
	t.Helper()
	createObject(t, s, store.KindProvider, p.Meta, p)
	permission := api.Permission{Meta: api.Meta{Name: "db", Owner: "team-a"}, Provider: p.Name}
	createObject(t, s, store.KindPermission, permission.Meta, permission)
	set := api.PermissionSet{Meta: api.Meta{Name: "web", Owner: "team-a"}, Permissions: []string{"db"}, Pods: []api.PodPattern{{Namespace: "*"}}}
	createObject(t, s, store.KindSet, set.Meta, set)
}

func createObject(t *testing.T, s *store.Store, kind store.Kind, m api.Meta, o any) {
	t.Helper()
	body, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), func(tx store.Tx) error {
		return tx.Create(store.Object{Kind: kind, Name: m.Name, Owner: m.Owner, Body: body, Version: 1})
	}); err != nil {
		t.Fatal(err)
	}
}

func updateProvider(t *testing.T, s *store.Store, name string, change func(*api.Provider)) {
	t.Helper()
	updateObject(t, s, store.KindProvider, name, change)
}

func updateObject[T any](t *testing.T, s *store.Store, kind store.Kind, name string, change func(*T)) {
	t.Helper()
	if err := s.Write(t.Context(), func(tx store.Tx) error {
		o, err := tx.LockObject(kind, name)
		if err != nil {
			return err
		}
		var p T
		if err := json.Unmarshal(o.Body, &p); err != nil {
			return err
		}
		change(&p)
		if o.Body, err = json.Marshal(p); err != nil {
			return err
		}
		was := o.Version
		o.Version++
		return tx.Update(o, was)
	}); err != nil {
		t.Fatal(err)
	}
}

// The pods send requests when the breaker of the init-action-server would allow an
// attempt: three without the breaker, 90 s apart, then one for each interval of its backoff, which
// doubles up to an hour.
func TestAnUnreachableProviderIsCalledNoMoreThanTheBackoffAllows(t *testing.T) {
	const pods, maxCalls = 10, 5
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "centre.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	began := time.Unix(1_700_000_000, 0).UTC()
	clock := clocktest.NewFakeClock(began)
	down := &fakeProvider{clock: clock, downUntil: began.Add(time.Hour), calls: map[string][]time.Time{}}
	register(t, s, api.Provider{Meta: api.Meta{Name: "double", Owner: "platform"}, CanRevoke: true, TimeoutSeconds: 1,
		Retry: api.Retry{MaxCalls: maxCalls, BackoffSeconds: 2, PollTimeoutSeconds: 600}})
	e := &lifecycle.Engine{Store: s, Limiter: noLimits{clock}, Breaker: noLimits{clock}, Clients: down, Clock: clock, Random: func() float64 { return 0.5 },
		Notifier: noLimits{clock}, Metrics: noLimits{clock}, Log: slog.New(slog.DiscardHandler)}

	requestAt := map[int]time.Time{} // time of the next request of a pod
	failures := map[int]int{}
	ids := make([]string, pods)
	for n := range pods {
		requestAt[n] = began.Add(time.Duration(n) * 100 * time.Millisecond)
	}
	requests := 0
	for len(requestAt) > 0 {
		// Run what comes first: a request or a due step.
		first := -1
		for n, at := range requestAt {
			if first < 0 || at.Before(requestAt[first]) || at.Equal(requestAt[first]) && n < first {
				first = n
			}
		}
		if runNext(t, e, requestAt[first]) {
			continue
		}
		if requestAt[first].After(clock.Now()) {
			clock.SetTime(requestAt[first])
		}
		r := api.ApplicationRequest{Cluster: "c1", Namespace: "shop", Pod: fmt.Sprint(first), PodUID: fmt.Sprint(first), PodIPs: []string{fmt.Sprintf("10.0.0.%d", first)}, Set: "web"}
		a, _, outcome, err := e.Request(t.Context(), r, "server")
		if err != nil {
			t.Fatal(err)
		}
		ids[first] = a.ID
		switch {
		case a.State == api.Granted:
			delete(requestAt, first)
		case outcome == lifecycle.RequestUnchanged:
			requestAt[first] = clock.Now().Add(30 * time.Second) // poll interval
		default:
			requests++
			failures[first]++
			requestAt[first] = clock.Now().Add(interval(failures[first]))
		}
		if clock.Now().After(began.Add(4 * time.Hour)) {
			t.Fatalf("%d pods did not recover", len(requestAt))
		}
	}

	total := 0
	for n, id := range ids {
		calls := down.calls[id]
		total += len(calls)
		// 2, 4, 8, 16 s and 50 % jitter: an attempt takes 45 s.
		for i := 1; i < len(calls) && calls[i].Before(down.downUntil); i++ {
			if gap, least := calls[i].Sub(calls[i-1]), 3*time.Second<<((i-1)%maxCalls); i%maxCalls != 0 && gap < least {
				t.Errorf("pod %d: call %d is %s after the previous call, want at least %s", n, i, gap, least)
			}
		}
		if last := calls[len(calls)-1]; last.After(down.downUntil.Add(time.Hour)) {
			t.Errorf("pod %d recovered %s after the provider did", n, last.Sub(down.downUntil))
		}
	}
	if most := pods * (7*maxCalls + 1); total > most {
		t.Errorf("%d calls for %d attempts, want at most %d", total, requests, most)
	}
	// 3 attempts, 90 s apart, then one after 3, 6, 12, 24 and 48 min.
	if most := pods * 8; requests > most {
		t.Errorf("%d attempts, want at most %d", requests, most)
	}
	t.Logf("%d attempts, %d calls", requests, total)
}

// interval is the time until the next request after a number of failures.
func interval(failures int) time.Duration {
	if failures < 3 {
		return 90 * time.Second
	}
	return min(3*time.Minute<<(failures-3), time.Hour)
}
