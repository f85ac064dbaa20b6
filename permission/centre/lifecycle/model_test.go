package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	clocktest "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
	"github.com/breakwater-dev/breakwater/permission/centre/provider"
	"github.com/breakwater-dev/breakwater/permission/centre/ratelimit"
	"github.com/breakwater-dev/breakwater/permission/centre/registry"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
	"github.com/breakwater-dev/breakwater/test/race"
)

// TestNoGrantOutlivesItsPod runs pods, two engines, a provider that answers anything, and
// processes that die at any call, in random order. More steps:
//
//	go test -run TestNoGrantOutlivesItsPod -rapid.checks 20000 -rapid.steps 50 ./permission/centre/lifecycle
func TestNoGrantOutlivesItsPod(t *testing.T) {
	s, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "centre.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// The model does not test power failures.
	if _, err := s.Writer().Exec("PRAGMA synchronous = OFF"); err != nil {
		t.Fatal(err)
	}
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		_ = flag.Set(checks.Name, strconv.Itoa(100/race.Slowdown)) // it accepts a number
	}
	steps := 0
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt, s)
		actions := map[string]func(*rapid.T){"": func(t *rapid.T) { m.check(t) }}
		for name, action := range map[string]struct {
			weight int
			do     func()
		}{
			"pod starts": {4, m.startPod}, "permission is requested": {3, m.request}, "step runs": {8, m.runStep},
			"pod ends": {1, m.endPod}, "pod is revoked": {1, m.revokePod}, "pod ends and is revoked": {3, m.endAndRevokePod},
			"application is revoked": {1, m.revokeApplication}, "application is reset": {1, m.reset}, "pods are reported": {1, m.report},
			"time passes":          {3, m.advance},
			"request arrives late": {1, m.requestLate}, "provider decides": {1, m.decide}, "provider revokes later": {1, m.completeRevocation}, "provider deregisters": {1, m.deregister}, "provider registers": {1, m.register},
			"permission changes": {1, m.changePermission},
		} {
			for i := range action.weight {
				actions[fmt.Sprintf("%s (%d)", name, i)] = m.step(action.do)
			}
		}
		rt.Repeat(actions)
		m.quiesce()
		steps += m.steps
	})
	t.Logf("%d steps", steps)
}

// sets are the permission sets and the provider of each permission. Provider p2 is
// nodeScoped, and all pods run on one node. Provider p3 cannot distinguish its permissions.
var (
	sets           = map[string][]string{"web": {"db", "cache"}, "jobs": {"db"}, "v1": {"record-v1"}, "v2": {"record-v2"}}
	providersOf    = map[string]string{"db": "p1", "cache": "p2", "record-v1": perAddress, "record-v2": perAddress}
	modelProviders = []string{"p1", "p2", perAddress}
)

// perAddress is the provider with one entry for each address.
const perAddress = "p3"

const (
	modelPods, modelIPs = 8, 2
	nodeIP              = "192.0.2.1"
	callTimeout         = 10 * time.Second
)

// sorted returns the keys of a map in the same order in each run, as rapid needs.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// pod is a pod of the cluster.
type pod struct {
	uid, ip string
	exists  bool
	// ended: the controller has revoked all permissions of the pod.
	ended bool
}

// crashed is the panic of a process that dies.
type crashed struct{}

type model struct {
	t        *rapid.T
	store    *store.Store
	clock    *clocktest.FakeClock
	engines  []*lifecycle.Engine
	registry *registry.Registry
	pods     []*pod
	// revoked are the applications whose revocation the centre has accepted.
	revoked  map[string]bool
	provider *modelProvider
	// depth is the number of steps in progress, uncalled the number of those between the
	// stored intent and the call. quiet is true when nothing fails.
	depth, uncalled int
	quiet           bool
	steps           int
}

func newModel(t *rapid.T, s *store.Store) *model {
	m := &model{t: t, store: s, clock: clocktest.NewFakeClock(time.Unix(1_700_000_000, 0)), revoked: map[string]bool{}}
	m.provider = &modelProvider{model: m, granted: map[entry]string{}, pending: map[entry]string{}, revoking: map[entry]bool{}}
	for _, table := range []string{"objects", "links", "audit", "applications", "application_ips", "grants", "grant_ips", "history", "pace", "ended_pods"} {
		m.must(s.Writer().Exec("DELETE FROM " + table))
	}
	for range 2 {
		m.engines = append(m.engines, &lifecycle.Engine{Store: s, Limiter: m, Breaker: m, Clients: m.provider, Clock: m.clock,
			Random: func() float64 { return 0.5 }, Notifier: m, Metrics: m, Log: slog.New(slog.DiscardHandler)})
	}
	m.registry = &registry.Registry{Store: s, Clock: m.clock}
	m.register()
	return m
}

func (m *model) must(_ any, err error) {
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *model) step(f func()) func(*rapid.T) {
	return func(t *rapid.T) {
		m.t = t
		m.steps++
		f()
	}
}

func (m *model) index(n int, label string) int { return rapid.IntRange(0, n-1).Draw(m.t, label) }

// chance is true once in n times, and never when the model is quiet.
func (m *model) chance(n int, label string) bool { return !m.quiet && m.index(n, label) == n-1 }

func (m *model) ctx() context.Context { return context.Background() }

// register registers what is not registered.
func (m *model) register() {
	put := func(kind store.Kind, meta api.Meta, o any, to store.Kind, references ...string) {
		body, err := json.Marshal(o)
		m.must(nil, err)
		err = m.store.Write(m.ctx(), func(tx store.Tx) error {
			if err := tx.Create(store.Object{Kind: kind, Name: meta.Name, Owner: meta.Owner, Body: body, Version: 1}); err != nil {
				return err
			}
			return tx.SetReferences(kind, meta.Name, to, references)
		})
		if !errors.Is(err, store.ErrConflict) {
			m.must(nil, err)
		}
	}
	for _, name := range modelProviders {
		p := api.Provider{Meta: api.Meta{Name: name, Owner: "platform"}, CanRevoke: true, NodeScoped: name == "p2", TimeoutSeconds: int(callTimeout / time.Second),
			Retry: api.Retry{MaxCalls: 2, BackoffSeconds: 2, PollSeconds: 2, PollTimeoutSeconds: 60}}
		put(store.KindProvider, p.Meta, p, "")
	}
	for _, name := range sorted(providersOf) {
		of := providersOf[name]
		p := api.Permission{Meta: api.Meta{Name: name, Owner: "team-a"}, Provider: of}
		put(store.KindPermission, p.Meta, p, store.KindProvider, of)
	}
	for _, name := range sorted(sets) {
		permissions := sets[name]
		p := api.PermissionSet{Meta: api.Meta{Name: name, Owner: "team-a"}, Permissions: permissions, Pods: []api.PodPattern{{Namespace: "*"}}}
		put(store.KindSet, p.Meta, p, store.KindPermission, permissions...)
	}
}

// changePermission gives a permission other parameters.
func (m *model) changePermission() {
	name, module := sorted(providersOf)[m.index(len(providersOf), "permission")], []string{"a", "b"}[m.index(2, "module")]
	m.must(nil, m.store.Write(m.ctx(), func(tx store.Tx) error {
		o, err := tx.LockObject(store.KindPermission, name)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		var p api.Permission
		m.must(nil, errors.Join(err, json.Unmarshal(o.Body, &p)))
		p.Parameters = map[string]string{"module": module}
		o.Body, err = json.Marshal(p)
		m.must(nil, err)
		return tx.Update(o, o.Version) // deregister needs version 1
	}))
}

// deregister deletes all objects that the registry allows to be deleted. No grant of a deleted provider is
// left at the provider.
func (m *model) deregister() {
	if !m.chance(4, "deregister") {
		return
	}
	name := modelProviders[m.index(len(modelProviders), "provider")]
	for _, set := range sorted(sets) {
		m.allowInUse(m.registry.Sets().Delete(m.ctx(), set, 1, "admin", func(store.View, api.PermissionSet) error { return nil }))
	}
	for _, permission := range sorted(providersOf) {
		if providersOf[permission] == name {
			m.allowInUse(m.registry.Permissions().Delete(m.ctx(), permission, 1, "admin", func(store.View, api.Permission) error { return nil }))
		}
	}
	if m.allowInUse(m.registry.Providers().Delete(m.ctx(), name, 1, "admin", func(store.View, api.Provider) error { return nil })) {
		for h := range m.provider.granted {
			if h.provider == name {
				m.t.Fatalf("provider %s is deleted, but has granted %+v", name, h)
			}
		}
	}
}

func (m *model) allowInUse(err error) (deleted bool) {
	var inUse registry.InUse
	if !errors.As(err, &inUse) && !errors.Is(err, store.ErrNotFound) {
		m.must(nil, err)
	}
	return err == nil
}

// startPod starts a pod with a free address; most pods request permissions at once.
func (m *model) startPod() {
	ip := fmt.Sprintf("10.0.0.%d", m.index(modelIPs, "ip"))
	if len(m.pods) == modelPods || slices.ContainsFunc(m.pods, func(p *pod) bool { return p.exists && p.ip == ip }) {
		return
	}
	p := &pod{uid: fmt.Sprintf("uid-%d", len(m.pods)), ip: ip, exists: true}
	m.pods = append(m.pods, p)
	if !m.chance(4, "later") {
		m.requestFor(p)
	}
}

// somePod returns a pod for which the condition holds; nil if there is none.
func (m *model) somePod(condition func(*pod) bool) *pod {
	var all []*pod
	for _, p := range m.pods {
		if condition(p) {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[m.index(len(all), "pod")]
}

func requestOf(p *pod, set string) api.ApplicationRequest {
	return api.ApplicationRequest{Cluster: "c1", Namespace: "shop", Pod: p.uid, PodUID: p.uid, PodIPs: []string{p.ip}, NodeIPs: []string{nodeIP}, Set: set}
}

// request is the call of the init-action-server for a pod that exists.
func (m *model) request() {
	p := m.somePod(func(p *pod) bool { return p.exists })
	if p != nil {
		m.requestFor(p)
	}
}

func (m *model) requestFor(p *pod) {
	r := requestOf(p, sorted(sets)[m.index(len(sets), "set")])
	first := !slices.ContainsFunc(m.applications(), func(a store.Application) bool { return a.Request.PodUID == p.uid })
	_, _, outcome, err := m.engine().Request(m.ctx(), r, "server")
	if first {
		for _, a := range m.applications() {
			if a.Request.PodUID != p.uid && a.Request.PodIPs[0] == p.ip {
				m.revoked[a.ID] = true // its pod has ended: the address is that of p
			}
		}
	}
	var notRegistered lifecycle.NotRegistered
	switch {
	case errors.As(err, &notRegistered), errors.Is(err, lifecycle.ErrRevokeRequested), errors.Is(err, lifecycle.ErrCallActive), errors.Is(err, lifecycle.ErrRevocationAccepted):
	case err != nil:
		m.t.Fatal(err)
	case outcome != lifecycle.RequestUnchanged:
		delete(m.revoked, lifecycle.ID(r))
	}
}

// requestLate is a request that the init-action-server sent before the pod ended.
func (m *model) requestLate() {
	if p := m.somePod(func(p *pod) bool { return p.ended }); p != nil {
		_, _, _, err := m.engine().Request(m.ctx(), requestOf(p, "web"), "server")
		var notRegistered lifecycle.NotRegistered
		if !errors.Is(err, lifecycle.ErrRevokeRequested) && !errors.As(err, &notRegistered) {
			m.t.Fatalf("a request for pod %s, which has ended: %v", p.uid, err)
		}
	}
}

// address returns the address to which a provider grants for a pod.
func address(provider string, r api.ApplicationRequest) string {
	if provider == "p2" {
		return r.NodeIPs[0]
	}
	return r.PodIPs[0]
}

func (m *model) engine() *lifecycle.Engine { return m.engines[m.index(len(m.engines), "engine")] }

func (m *model) endPod() {
	if p := m.somePod(func(p *pod) bool { return p.exists }); p != nil {
		p.exists = false
	}
}

func (m *model) endAndRevokePod() {
	if p := m.somePod(func(p *pod) bool { return p.exists }); p != nil {
		p.exists = false
		m.revoke(p)
	}
}

// revokePod is the call of the permission controller for a pod that has ended.
func (m *model) revokePod() {
	if p := m.somePod(func(p *pod) bool { return !p.exists }); p != nil {
		m.revoke(p)
	}
}

func (m *model) revoke(p *pod) {
	r := api.RevokeRequest{Cluster: "c1", PodUID: p.uid, LetGo: m.chance(3, "let go")}
	_, err := m.engine().RevokePod(m.ctx(), r, "controller")
	m.must(nil, err)
	p.ended = true
	for _, set := range sorted(sets) {
		m.revoked[lifecycle.ID(requestOf(p, set))] = true
	}
}

func (m *model) applications() []store.Application {
	apps, err := m.store.View(m.ctx()).Applications(store.Filter{}, store.Page{Limit: 1000})
	m.must(nil, err)
	return apps
}

func (m *model) someApplication() (store.Application, bool) {
	apps := m.applications()
	if len(apps) == 0 {
		return store.Application{}, false
	}
	return apps[m.index(len(apps), "application")], true
}

func (m *model) revokeApplication() {
	if app, ok := m.someApplication(); ok && m.chance(2, "revoke") {
		_, _, _, err := m.engine().Revoke(m.ctx(), app.ID, "owner")
		m.must(nil, err)
		m.revoked[app.ID] = true
	}
}

func (m *model) reset() {
	app, ok := m.someApplication()
	if !ok {
		return
	}
	_, _, _, err := m.engine().Reset(m.ctx(), app.ID, "owner")
	var notRegistered lifecycle.NotRegistered
	if !errors.As(err, &notRegistered) && !errors.Is(err, lifecycle.ErrRevokeRequested) && !errors.Is(err, lifecycle.ErrResetAfterRevocation) {
		m.must(nil, err)
	}
}

// report reports the pods that exist. Those that the controller never saw end are revoked.
func (m *model) report() {
	r := api.PodReport{ClusterUID: "c1-uid", Observed: m.clock.Now()}
	for _, p := range m.pods {
		if p.exists {
			r.Pods = append(r.Pods, api.LivePod{UID: p.uid, IPs: []string{p.ip}})
		}
	}
	r.Empty = len(r.Pods) == 0
	result, err := m.engine().ApplyPodReport(m.ctx(), "c1", r, "controller")
	m.must(nil, err)
	if result.Held > 0 {
		_, err := m.engine().ConfirmReport(m.ctx(), "c1", api.ReportConfirmation{Revoke: result.Held}, "admin")
		m.must(nil, err)
		return
	}
	for _, id := range result.Applications {
		m.revoked[id] = true
	}
}

func (m *model) advance() {
	m.clock.Step([]time.Duration{100 * time.Millisecond, 2 * time.Second, 5 * time.Second, 16 * time.Second, 61 * time.Second, 10 * time.Minute}[m.index(6, "time")])
}

// takeOver lets another process run all that is due, before or after the run of a step
// has expired.
func (m *model) takeOver() {
	m.clock.Step([]time.Duration{5 * time.Second, 16 * time.Second}[m.index(2, "expiry")])
	e := m.engine()
	for _, provider := range modelProviders {
		for range modelPods {
			if !m.run(provider, e) {
				break
			}
		}
	}
}

func (m *model) runStep() {
	m.run(modelProviders[m.index(len(modelProviders), "provider")], m.engine())
}

// run starts up to three due steps of a provider in one transaction, and runs them. A process that dies leaves its step in progress.
func (m *model) run(provider string, e *lifecycle.Engine) (ran bool) {
	depth, uncalled := m.depth, m.uncalled
	defer func() {
		if p := recover(); p != nil && p != (crashed{}) {
			panic(p)
		}
		m.depth, m.uncalled = depth, uncalled
	}()
	// The next call may be made although its application is revoked meanwhile.
	ran, err := e.RunSteps(m.ctx(), provider, 1+m.index(3, "steps"), func(following int) { m.uncalled = uncalled + following })
	if !errors.Is(err, lifecycle.ErrStaleStep) {
		m.must(nil, err)
	}
	return ran
}

// Begin implements lifecycle.RateLimiter.
func (m *model) Begin(store.Tx, string, api.RateLimit) (*ratelimit.Slots, error) {
	at := m.clock.Now()
	if m.chance(12, "rate limit") {
		at = at.Add(50 * time.Second)
	}
	return ratelimit.NewSlots(m.clock.Now(), at, 0, func(time.Time) error { return nil }), nil
}

// Reserve implements lifecycle.RateLimiter: a slot in place of one that expired after the
// intent.
func (m *model) Reserve(context.Context, string, api.RateLimit, time.Duration) (time.Time, error) {
	if m.chance(12, "rate limit") {
		return time.Time{}, ratelimit.NoSlot{Next: m.clock.Now().Add(50 * time.Second)}
	}
	return m.clock.Now(), nil
}

// Expired implements lifecycle.RateLimiter.
func (m *model) Expired(at time.Time) bool { return m.clock.Since(at) > time.Second }

// OpenFor implements lifecycle.Breaker. The engine calls it before it stores the
// intent, so other processes may act here.
func (m *model) OpenFor(string) time.Duration {
	m.meanwhile(true)
	if m.chance(12, "open") {
		return 15 * time.Second
	}
	return 0
}

// DownSince implements lifecycle.Breaker.
func (m *model) DownSince(string) time.Time { return m.clock.Now().Add(-time.Hour) }

// Do implements lifecycle.Breaker.
func (m *model) Do(_ string, call func() bool) bool {
	if m.chance(16, "half-open") {
		return false
	}
	call()
	return true
}

// Notify implements lifecycle.Notifier.
func (*model) Notify(string) {}

// GrantState implements lifecycle.Metrics.
func (*model) GrantState(string, string, api.State) {}

// LeakedGrantAtNewPod implements lifecycle.Metrics.
func (*model) LeakedGrantAtNewPod(string) {}

// PodReportPage implements lifecycle.Metrics.
func (*model) PodReportPage(string, string) {}

// Call implements lifecycle.Metrics. The engine calls it after a call and before it
// stores the result, so other processes may act here.
func (m *model) Call(string, provider.Op, provider.Result, time.Duration) {
	m.meanwhile(true)
	if m.chance(12, "die before the result is stored") {
		panic(crashed{})
	}
}

// meanwhile lets other processes act. Between the stored intent and the call they
// revoke nothing: the call would be made nevertheless and its grant revoked afterwards,
// but checkCall would fail the test.
func (m *model) meanwhile(afterCall bool) {
	if m.depth > 2 || !m.chance(3, "meanwhile") {
		return
	}
	m.depth++
	defer func() { m.depth-- }()
	if !afterCall {
		m.uncalled++
		defer func() { m.uncalled-- }()
	}
	actions := []func(){m.advance, m.runStep, m.runStep, m.endPod, m.requestLate, m.takeOver, m.takeOver, m.completeRevocation}
	if m.uncalled == 0 {
		// The first request of a pod revokes, too.
		actions = append(actions, m.startPod, m.revokePod, m.revokePod, m.revokeApplication, m.request, m.decide, m.report, m.changePermission)
	}
	for range m.index(3, "actions") + 1 {
		actions[m.index(len(actions), "action")]()
	}
}
