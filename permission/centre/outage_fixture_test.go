package centre

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.opentelemetry.io/otel/metric/noop"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centreclient"
	initserver "github.com/breakwater-dev/breakwater/permission/initaction/server"
	"github.com/breakwater-dev/breakwater/permission/notifier"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/settings"
	"github.com/breakwater-dev/breakwater/test/pipenetwork"
	double "github.com/breakwater-dev/breakwater/test/provider"
)

// maxCalls is the number of calls of an attempt.
const maxCalls = 5

// startDouble starts a double outside of the synctest bubble, because the centre
// calls it over the real network: no idle connection may remain.
func startDouble(t *testing.T) (*double.Double, string) {
	t.Helper()
	stub := double.New(time.Now)
	server := httptest.NewUnstartedServer(stub)
	server.Config.SetKeepAlivesEnabled(false)
	server.Start()
	t.Cleanup(server.Close)
	return stub, server.URL
}

// outageFixture has a centre, an init-action-server and pods.
type outageFixture struct {
	t                 *testing.T
	config            Config
	double            *double.Double
	ctx               context.Context
	cancel            func()
	running           sync.WaitGroup
	toCentre, toInit  pipenetwork.Network
	centre            *Centre
	stopCentreReplica func()
	kube              *fake.Clientset
	podCache          cache.Indexer
}

func newOutageFixture(t *testing.T, config Config, stub *double.Double, limit *rate.Limiter) *outageFixture {
	t.Helper()
	w := &outageFixture{t: t, config: config, double: stub, podCache: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})}
	w.ctx, w.cancel = context.WithCancel(t.Context())
	w.startCentre()
	w.startInitActionServer(limit)
	return w
}

// stop stops everything, so that no goroutine of the bubble remains.
func (w *outageFixture) stop() {
	w.cancel()
	w.stopCentre()
	w.running.Wait()
}

// serve serves until the function that it returns is called.
func (w *outageFixture) serve(n *pipenetwork.Network, h http.Handler) func() {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	listener := n.Listen()
	w.running.Go(func() { _ = server.Serve(listener) })
	return func() { _ = server.Close() }
}

// startCentre starts a centre with the store of its predecessor.
func (w *outageFixture) startCentre() {
	w.t.Helper()
	c, err := New(w.t.Context(), w.config, slog.New(slog.DiscardHandler))
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	var running sync.WaitGroup
	running.Go(func() { c.engine.Run(ctx, w.config.DrainTimeout) })
	closeServer := w.serve(&w.toCentre, c.server.Handler())
	w.centre, w.stopCentreReplica = c, sync.OnceFunc(func() {
		close(c.stopping)
		cancel()
		closeServer()
		running.Wait()
		c.store.Close()
	})
}

func (w *outageFixture) stopCentre() { w.stopCentreReplica() }

// register registers the double and a set of one permission.
func (w *outageFixture) register(endpoint string) {
	w.t.Helper()
	p := double.Registration("double", endpoint, "platform")
	p.RateLimit, p.CredentialsRef, p.AllowHTTP, p.TimeoutSeconds = api.RateLimit{PerSecond: 50, Burst: 5}, "secret", true, 1
	p.Retry = api.Retry{MaxCalls: maxCalls, BackoffSeconds: 2, PollTimeoutSeconds: 600}
	f := &fixture{t: w.t, url: "http://centre", skipValidation: true, client: w.toCentre.Client("192.0.2.9")}
	f.mustDo(adminToken, "POST", "/v1/providers", p, nil)
	f.mustDo(ownerToken, "POST", "/v1/permissions", api.Permission{Meta: api.Meta{Name: "db", Owner: "team-a"}, Provider: "double", Parameters: map[string]string{"name": "db"}}, nil)
	f.mustDo(ownerToken, "POST", "/v1/permissionsets", api.PermissionSet{Meta: api.Meta{Name: "web", Owner: "team-a"}, Permissions: []string{"db"}, Pods: []api.PodPattern{{Namespace: "*"}}}, nil)
}

// startInitActionServer starts the server with a fake API server.
func (w *outageFixture) startInitActionServer(limit *rate.Limiter) {
	records := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	hub := notifier.New()
	w.kube = fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "sys", Name: podbreaker.PrimaryName, ResourceVersion: "1"}})
	version := 1
	w.kube.PrependReactor("update", "configmaps", func(a clienttesting.Action) (bool, runtime.Object, error) {
		cm := a.(clienttesting.UpdateAction).GetObject().(*corev1.ConfigMap).DeepCopy()
		version++
		cm.ResourceVersion = fmt.Sprint(version)
		_ = records.Update(cm)
		hub.NotifyAll()
		return true, cm, w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("configmaps"), cm, cm.Namespace)
	})
	// The token of a pod is its name.
	w.kube.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		r := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		r.Status = authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: r.Spec.Audiences, User: authenticationv1.UserInfo{
			Username: "system:serviceaccount:shop:default", Extra: map[string]authenticationv1.ExtraValue{
				"authentication.kubernetes.io/pod-name": {r.Spec.Token}, "authentication.kubernetes.io/pod-uid": {"uid-" + r.Spec.Token}}}}
		return true, r, nil
	})
	token := w.writeFile("centre-token", serverToken)
	s := settings.Default()
	s.Cluster = "c1"
	realClock := clock.RealClock{} // virtual in the bubble
	stop := w.serve(&w.toInit, initserver.New(initserver.Options{
		Kube: w.kube, Pods: corelisters.NewPodLister(w.podCache), Notifier: hub, Clock: realClock, Random: rand.Float64,
		Centre: centreclient.New(centreclient.Options{URL: func() string { return "http://centre" }, TokenFile: token, HTTP: w.toCentre.Client("192.0.2.8")}), Limit: limit,
		Breaker:  podbreaker.New("sys", w.kube.CoreV1(), corelisters.NewConfigMapLister(records), func() podbreaker.Policy { return s.Breaker }),
		Settings: func() settings.Settings { return s }, Recorder: record.NewFakeRecorder(10_000), Events: discardEvents{}, Meter: noop.Meter{},
	}))
	context.AfterFunc(w.ctx, stop)
}

func (w *outageFixture) writeFile(name, text string) string {
	path := filepath.Join(w.config.CredentialsDir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Error(err)
	}
	return path
}

type discardEvents struct{}

func (discardEvents) Send(context.Context, cloudevents.Event) {}
