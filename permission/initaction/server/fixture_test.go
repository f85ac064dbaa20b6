package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.opentelemetry.io/otel/metric/noop"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/internal/connlimit"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centreclient"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/notifier"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

// fastClock is a clock that runs speedup times as fast as real time.
type fastClock struct {
	clock.RealClock
	start time.Time
}

const speedup = 1000

// maxConnections is the maximum number of connections of a fixture without an authenticated request. A test opens no
// more at once.
const maxConnections = 1000

func (h fastClock) Now() time.Time { return h.start.Add(time.Since(h.start) * speedup) }

func (h fastClock) Since(t time.Time) time.Duration { return h.Now().Sub(t) }

func (h fastClock) NewTimer(d time.Duration) clock.Timer { return h.RealClock.NewTimer(d / speedup) }

func (h fastClock) NewTicker(d time.Duration) clock.Ticker { return h.RealClock.NewTicker(d / speedup) }

// fakeCentre is a fake permission centre. decide returns the state of an attempt.
type fakeCentre struct {
	mu       sync.Mutex
	clock    clock.Clock
	apps     map[string]*api.Application
	requests []api.ApplicationRequest
	revoked  []api.RevokeRequest
	resets   int
	// failures is the number of next calls that fail.
	failures int
	// outage is how long calls fail, from the first one on.
	outage    time.Duration
	firstCall time.Time
	// calls is the number of all calls, waits that of the open calls of Wait.
	calls, waits int
	// changed is closed when an application changes.
	changed chan struct{}
	decide  func(r api.ApplicationRequest, attempt int) (api.State, error)
}

var errUnreachable = errors.New("connection refused")

func (c *fakeCentre) call() error {
	if c.calls++; c.calls == 1 {
		c.firstCall = c.clock.Now()
	}
	if c.clock.Since(c.firstCall) < c.outage {
		return errUnreachable
	}
	if c.failures > 0 {
		c.failures--
		return errUnreachable
	}
	return nil
}

func (c *fakeCentre) ListByPod(_ context.Context, cluster, uid string) ([]api.Application, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call(); err != nil {
		return nil, err
	}
	var all []api.Application
	for _, a := range c.apps {
		if a.Cluster == cluster && a.PodUID == uid {
			all = append(all, *a)
		}
	}
	return all, nil
}

func (c *fakeCentre) Apply(_ context.Context, r api.ApplicationRequest) (api.Application, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call(); err != nil {
		return api.Application{}, err
	}
	r.PodIPs = slices.Sorted(slices.Values(r.PodIPs)) // as the centre does
	id := fmt.Sprintf("%s.%s.%s", r.PodUID, strings.Join(r.PodIPs, "-"), r.Set)
	a := c.apps[id]
	if a == nil {
		a = &api.Application{ID: id, ApplicationRequest: r}
	} else if a.State == api.Revoking {
		return *a, &centreclient.StatusError{Status: http.StatusConflict, Detail: api.Error{Reason: "Conflict", Message: "it is being revoked"}}
	} else if a.State == api.Requested || a.State == api.Applying || a.State == api.Granted {
		return *a, nil
	}
	state, err := c.decide(r, a.Attempt+1)
	if err != nil {
		return api.Application{}, err
	}
	c.requests = append(c.requests, r)
	a.Attempt++
	a.Version++
	a.State = state
	a.Permissions = []api.ApplicationPermission{{Permission: r.Set + "-db", Owner: "team-db", State: state, Message: "because"}}
	c.apps[id] = a
	return *a, nil
}

func (c *fakeCentre) Wait(ctx context.Context, id string, version int64, wait time.Duration) (api.Application, error) {
	timer := c.clock.NewTimer(wait)
	defer timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.call(); err != nil {
		return api.Application{}, err
	}
	c.waits++
	defer func() { c.waits-- }()
	for expired := false; ; {
		a, changed := *c.apps[id], c.changed
		if expired || a.Version > version {
			return a, nil
		}
		c.mu.Unlock()
		var err error
		select {
		case <-changed:
		case <-timer.C():
			expired = true
		case <-ctx.Done():
			err = ctx.Err()
		}
		if c.mu.Lock(); err != nil {
			return a, err
		}
	}
}

func (c *fakeCentre) called() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

func (c *fakeCentre) waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waits
}

func (c *fakeCentre) Revoke(_ context.Context, r api.RevokeRequest) (api.RevokeResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revoked = append(c.revoked, r)
	for _, a := range c.apps {
		if a.PodUID == r.PodUID && !slices.Equal(a.PodIPs, slices.Sorted(slices.Values(r.KeepIPs))) {
			a.State = api.Revoking
		}
	}
	return api.RevokeResult{}, c.call()
}

func (c *fakeCentre) Reset(context.Context, string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resets++
	return nil
}

// set sets the state of every application.
func (c *fakeCentre) set(state api.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.apps {
		a.State = state
		a.Version++
		a.Permissions = slices.Clone(a.Permissions) // callers have the former one
		a.Permissions[0].State = state
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// update updates an application, whose state may stay the same.
func (c *fakeCentre) update(id string, state api.State) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.apps[id].State = state
	c.apps[id].Version++
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *fakeCentre) attempts() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.requests)
}

type eventSink struct {
	mu     sync.Mutex
	events []cloudevents.Event
}

func (s *eventSink) Send(_ context.Context, e cloudevents.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

func (s *eventSink) count(kind string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, e := range s.events {
		if strings.Contains(e.Type(), kind) {
			n++
		}
	}
	return n
}

// fixture is a server with the pod default/web, whose address is that of the test.
type fixture struct {
	t        *testing.T
	kube     *fake.Clientset
	pods     cache.Indexer
	records  cache.Indexer
	centre   *fakeCentre
	sent     *eventSink
	recorder *record.FakeRecorder
	settings settings.Settings
	hub      *notifier.Notifier
	url      string
	// source is the source address of requests; empty is that of the test.
	source   string
	draining chan struct{}
	// tokens are the tokens that the API server accepts.
	tokens       map[string]authenticationv1.UserInfo
	preparations []Preparation
	mu           sync.Mutex
	conditions   []corev1.PodCondition
}

func newPod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid", Labels: map[string]string{podmeta.Label: podmeta.LabelRequired},
			Finalizers: []string{podmeta.Finalizer}},
		Spec: corev1.PodSpec{NodeName: "node", InitContainers: []corev1.Container{{Name: protocol.ContainerName,
			Env: []corev1.EnvVar{{Name: protocol.EnvSets, Value: "orders"}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending, PodIPs: []corev1.PodIP{{IP: "127.0.0.1"}}},
	}
	if change != nil {
		change(p)
	}
	return p
}

func bound(pod, uid string) authenticationv1.UserInfo {
	return authenticationv1.UserInfo{Username: "system:serviceaccount:default:web", Extra: map[string]authenticationv1.ExtraValue{
		extraPodName: {pod}, extraPodUID: {uid},
	}}
}

func newFixture(t *testing.T, pod *corev1.Pod, preparations ...Preparation) *fixture {
	t.Helper()
	return newFixtureAt(t, fastClock{start: time.Now()}, pod, preparations...)
}

// newFixtureAt returns a fixture with the given clock.
func newFixtureAt(t *testing.T, c clock.WithTicker, pod *corev1.Pod, preparations ...Preparation) *fixture {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}, Spec: corev1.NodeSpec{PodCIDRs: []string{"fd00::/64", "127.0.0.0/24"}}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}}}
	w := &fixture{t: t, kube: fake.NewClientset(node, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "sys", Name: podbreaker.PrimaryName, ResourceVersion: "1"}}),
		pods: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), records: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}),
		centre: &fakeCentre{clock: c, apps: map[string]*api.Application{}, changed: make(chan struct{}), decide: func(api.ApplicationRequest, int) (api.State, error) { return api.Granted, nil }},
		sent:   &eventSink{}, recorder: record.NewFakeRecorder(10_000), settings: settings.Default(), hub: notifier.New(), draining: make(chan struct{}),
		tokens: map[string]authenticationv1.UserInfo{
			"pod": bound("web", "uid"), "another-pod": bound("other", "other-uid"), "former-pod": bound("web", "former"),
			"account": {Username: "system:serviceaccount:default:web"}, "jane": {Username: "jane"}, "joe": {Username: "joe"},
		}, preparations: preparations}
	if pod != nil {
		if err := w.kube.Tracker().Add(pod); err != nil {
			t.Fatal(err)
		}
		w.updatePod(pod)
	}
	w.kube.PrependReactor("create", "tokenreviews", w.reviewToken)
	w.kube.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		r := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		do := r.Spec.ResourceAttributes
		r.Status.Allowed = r.Spec.User == "jane" && do.Resource == "pods" && do.Subresource == "permission" && do.Namespace == "default"
		return true, r, nil
	})
	w.kube.PrependReactor("patch", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		var p corev1.Pod
		if err := json.Unmarshal(a.(clienttesting.PatchAction).GetPatch(), &p); err != nil {
			t.Error(err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.conditions = append(w.conditions, p.Status.Conditions...)
		return true, &p, nil
	})
	// Writes update the cache, as an informer does.
	version := 1
	w.kube.PrependReactor("update", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		cm := a.(clienttesting.UpdateAction).GetObject().(*corev1.ConfigMap).DeepCopy()
		version++
		cm.ResourceVersion = strconv.Itoa(version)
		if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("configmaps"), cm, cm.Namespace); err != nil {
			return true, nil, err
		}
		_ = w.records.Update(cm)
		w.hub.NotifyAll()
		return true, cm, nil
	})
	records := corelisters.NewConfigMapLister(w.records)
	handler := New(Options{
		Kube: w.kube, Pods: corelisters.NewPodLister(w.pods), Notifier: w.hub, Centre: w.centre, Preparations: w.preparations, Clock: c, Random: func() float64 { return 0 },
		Breaker:  podbreaker.New("sys", w.kube.CoreV1(), records, func() podbreaker.Policy { return w.settings.Breaker }),
		Settings: func() settings.Settings { return w.settings }, Recorder: w.recorder, Events: w.sent, Meter: noop.Meter{}, Draining: w.draining,
	})
	server := httptest.NewUnstartedServer(handler)
	connlimit.New(maxConnections).Apply(server.Config)
	server.Start()
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *fixture) reviewToken(a clienttesting.Action) (bool, runtime.Object, error) {
	r := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
	user, ok := w.tokens[r.Spec.Token]
	if r.Spec.Token == "api-server" {
		user, ok = authenticationv1.UserInfo{Username: "jane"}, len(r.Spec.Audiences) == 0
	}
	r.Status = authenticationv1.TokenReviewStatus{Authenticated: ok, User: user, Audiences: r.Spec.Audiences}
	return true, r, nil
}

// requests returns the number of requests to the API server for a resource; empty means all.
func (w *fixture) requests(resource string) (n int) {
	for _, a := range w.kube.Actions() {
		if resource == "" || a.GetResource().Resource == resource {
			n++
		}
	}
	return n
}

// updatePod updates the pod in the cache of the server.
func (w *fixture) updatePod(p *corev1.Pod) {
	if err := w.pods.Add(p); err != nil {
		w.t.Error(err)
	}
	w.hub.Notify(string(p.UID))
}

// authorize sends the request of an init container.
func (w *fixture) authorize(token, body string) (int, protocol.Answer) {
	w.t.Helper()
	return w.send(w.t.Context(), http.MethodPost, protocol.AuthorizePath, token, body)
}

func (w *fixture) send(ctx context.Context, method, path, token, body string) (int, protocol.Answer) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := http.DefaultClient
	if w.source != "" {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(w.source)}}
		client = &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}}
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, protocol.Answer{Message: err.Error()}
	}
	defer func() { _ = res.Body.Close() }()
	var raw bytes.Buffer
	_, _ = raw.ReadFrom(res.Body)
	var answer protocol.Answer
	if err := json.Unmarshal(raw.Bytes(), &answer); err != nil && ctx.Err() == nil {
		w.t.Errorf("answer %q: %v", raw.String(), err)
	}
	return res.StatusCode, answer
}

const orders = `{"sets":["orders"]}`

// authorizeAsync sends the request in the background.
func (w *fixture) authorizeAsync(ctx context.Context) <-chan protocol.Answer {
	c := make(chan protocol.Answer, 1)
	go func() {
		_, answer := w.send(ctx, http.MethodPost, protocol.AuthorizePath, "pod", orders)
		c <- answer
	}()
	return c
}

// notifyAll notifies all calls n times, as writes of the breakers of other pods do, with time for each
// call to receive each notification.
func (w *fixture) notifyAll(n int) {
	for range n {
		w.hub.NotifyAll()
		time.Sleep(time.Millisecond)
	}
}

// waitForReason waits for a condition of the pod with the reason.
func (w *fixture) waitForReason(reason string) corev1.PodCondition {
	w.t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		w.mu.Lock()
		i := slices.IndexFunc(w.conditions, func(c corev1.PodCondition) bool { return c.Reason == reason })
		var found corev1.PodCondition
		if i >= 0 {
			found = w.conditions[i]
		}
		all := fmt.Sprint(w.conditions)
		w.mu.Unlock()
		if i >= 0 {
			return found
		}
		select {
		case <-deadline:
			w.t.Fatalf("no condition with reason %s: %s", reason, all)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func waitForAnswer(t *testing.T, c <-chan protocol.Answer) protocol.Answer {
	t.Helper()
	select {
	case a := <-c:
		return a
	case <-time.After(20 * time.Second):
		t.Fatal("the call did not end")
		return protocol.Answer{}
	}
}
