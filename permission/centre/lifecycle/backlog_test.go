package lifecycle_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/ratelimit"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
	"github.com/breakwater-dev/breakwater/test/race"
)

// callLog answers each call after its latency, and records it.
type callLog struct {
	mu          sync.Mutex
	calls       []time.Time
	byKey       map[string]int
	interrupted int
}

type loggedProvider map[string]*callLog

func (p loggedProvider) Client(of api.Provider) (provider.Client, error) { return p[of.Name], nil }

func (l *callLog) Call(ctx context.Context, c provider.Call) provider.Result {
	l.mu.Lock()
	l.calls = append(l.calls, time.Now())
	l.byKey[c.Key]++
	l.mu.Unlock()
	select {
	case <-time.After(300 * time.Millisecond):
		return provider.Result{Outcome: provider.Done, Sent: true}
	case <-ctx.Done():
		l.mu.Lock()
		defer l.mu.Unlock()
		l.interrupted++
		return provider.Result{Outcome: provider.Failed, Reason: provider.ReasonProviderTimeout, Sent: true}
	}
}

// check checks that each step was called once, except for interrupted calls, and that
// the provider was not called faster than its limit.
func (l *callLog) check(t *testing.T, keys, perSecond int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.byKey) != keys || len(l.calls) != keys+l.interrupted {
		t.Errorf("%d calls with %d keys, %d interrupted; want %d keys", len(l.calls), len(l.byKey), l.interrupted, keys)
	}
	slices.SortFunc(l.calls, time.Time.Compare)
	from := 0
	for i, at := range l.calls {
		for at.Sub(l.calls[from]) >= time.Second {
			from++
		}
		if n := i - from + 1; n > perSecond+1 {
			t.Fatalf("%d calls within a second, want at most %d", n, perSecond+1)
		}
	}
}

// Run with virtual time. The processes stop without time to drain, so that calls in
// progress are interrupted, and start again with the same database.
func TestBacklogsDrainAtTheRateLimitsAcrossRestarts(t *testing.T) {
	const pods, revocationsPerSecond, grantsPerSecond = 1000 / race.Slowdown, 5, 10
	address := "sqlite:" + filepath.Join(t.TempDir(), "centre.db")
	synctest.Test(t, func(t *testing.T) {
		logs := loggedProvider{"double": {byKey: map[string]int{}}, "other": {byKey: map[string]int{}}}
		w := &backlog{t: t, address: address, provider: logs}
		w.start()
		registerBacklog(t, w.engine.Store, revocationsPerSecond, grantsPerSecond)
		// The grants of the first provider exist from the start.
		w.setRate("double", 1000)
		for n := range pods {
			w.request(n, "web")
		}
		w.wait(time.Minute, map[api.State]int{api.Granted: pods})
		w.setRate("double", revocationsPerSecond)
		time.Sleep(2 * time.Second)
		logs["double"].reset()

		began := time.Now()
		for n := range pods {
			if _, err := w.engine.RevokePod(t.Context(), api.RevokeRequest{Cluster: "c1", PodUID: fmt.Sprintf("web-%d", n)}, "controller"); err != nil {
				t.Fatal(err)
			}
			w.request(n, "jobs")
		}
		for _, after := range []time.Duration{pods * time.Second / revocationsPerSecond / 8, pods*time.Second/revocationsPerSecond/3 + 100*time.Millisecond} {
			time.Sleep(time.Until(began.Add(after)))
			w.stop()
			time.Sleep(time.Second)
			w.start()
		}
		// 5 % of the limit is the margin of package ratelimit. A restart may lose the slots
		// of the next 0.5 s, and a run expires after the timeout of the provider.
		grants := pods*time.Second/grantsPerSecond*100/95 + 30*time.Second
		revocations := pods*time.Second/revocationsPerSecond*100/95 + 30*time.Second
		time.Sleep(time.Until(began.Add(grants)))
		if n := w.states()[api.Granted]; n != pods {
			t.Errorf("%d of %d are granted after %s", n, pods, grants)
		}
		time.Sleep(time.Until(began.Add(revocations)))
		if states := w.states(); states[api.Revoked] != pods || states[api.Granted] != pods {
			t.Errorf("after %s: %v", revocations, states)
		}
		w.stop()
		logs["double"].check(t, pods, revocationsPerSecond)
		logs["other"].check(t, pods, grantsPerSecond)
	})
}

func (l *callLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls, l.byKey = nil, map[string]int{}
}

// backlog is a process with a database.
type backlog struct {
	t        *testing.T
	address  string
	provider loggedProvider
	engine   *lifecycle.Engine
	stop     func()
}

func (w *backlog) start() {
	w.t.Helper()
	s, err := store.Open(w.t.Context(), w.address)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := s.Writer().Exec("PRAGMA synchronous = OFF"); err != nil {
		w.t.Fatal(err)
	}
	realClock := clock.RealClock{} // virtual in the bubble
	none := noLimits{}
	w.engine = &lifecycle.Engine{Store: s, Limiter: ratelimit.New(s, realClock, slog.New(slog.DiscardHandler)), Breaker: &lifecycle.Breakers{}, Clients: w.provider, Clock: realClock,
		Random: func() float64 { return 0.5 }, Notifier: none, Metrics: none, Log: slog.New(slog.DiscardHandler), ConcurrentCallsPerProvider: 32}
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.engine.Run(ctx, time.Millisecond) })
	w.stop = func() {
		cancel()
		running.Wait()
		s.Close()
	}
}

func (w *backlog) request(n int, set string) {
	w.t.Helper()
	uid := fmt.Sprintf("%s-%d", set, n)
	r := api.ApplicationRequest{Cluster: "c1", Namespace: "shop", Pod: uid, PodUID: uid, PodIPs: []string{fmt.Sprintf("10.%d.%d.%d", len(set), n/250, n%250)}, Set: set}
	if _, _, _, err := w.engine.Request(w.t.Context(), r, "server"); err != nil {
		w.t.Fatal(err)
	}
}

func (w *backlog) states() map[api.State]int {
	w.t.Helper()
	states, err := w.engine.Store.View(w.t.Context()).CountStates()
	if err != nil {
		w.t.Fatal(err)
	}
	return states
}

func (w *backlog) wait(within time.Duration, want map[api.State]int) {
	w.t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(time.Second) {
		ok := true
		for state, n := range want {
			ok = ok && w.states()[state] == n
		}
		if ok {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("after %s: %v, want %v", within, w.states(), want)
		}
	}
}

func (w *backlog) setRate(name string, perSecond float64) {
	w.t.Helper()
	updateProvider(w.t, w.engine.Store, name, func(p *api.Provider) { p.RateLimit.PerSecond = perSecond })
}

// registerBacklog registers set web of provider double, and set jobs of provider other.
func registerBacklog(t *testing.T, s *store.Store, revocations, grants float64) {
	t.Helper()
	p := api.Provider{Meta: api.Meta{Name: "double", Owner: "platform"}, CanRevoke: true, TimeoutSeconds: 10,
		RateLimit: api.RateLimit{PerSecond: revocations, Burst: 1}, Retry: api.Retry{MaxCalls: 5, BackoffSeconds: 2, PollTimeoutSeconds: 60}}
	register(t, s, p)
	p.Name, p.RateLimit.PerSecond = "other", grants
	for _, o := range []struct {
		kind store.Kind
		meta api.Meta
		body any
	}{
		{store.KindProvider, p.Meta, p},
		{store.KindPermission, api.Meta{Name: "name", Owner: "team-a"}, api.Permission{Meta: api.Meta{Name: "name", Owner: "team-a"}, Provider: "other"}},
		{store.KindSet, api.Meta{Name: "jobs", Owner: "team-a"}, api.PermissionSet{Meta: api.Meta{Name: "jobs", Owner: "team-a"}, Permissions: []string{"name"}, Pods: []api.PodPattern{{Namespace: "*"}}}},
	} {
		body, err := json.Marshal(o.body)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Write(t.Context(), func(tx store.Tx) error {
			return tx.Create(store.Object{Kind: o.kind, Name: o.meta.Name, Owner: o.meta.Owner, Body: body, Version: 1})
		}); err != nil {
			t.Fatal(err)
		}
	}
}
