package podpermission

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
	"github.com/breakwater-dev/breakwater/permission/centreclient"
	initclient "github.com/breakwater-dev/breakwater/permission/initaction/client"
	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	initserver "github.com/breakwater-dev/breakwater/permission/initaction/server"
	"github.com/breakwater-dev/breakwater/permission/notifier"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/settings"
	"github.com/breakwater-dev/breakwater/test/freeport"
	double "github.com/breakwater-dev/breakwater/test/provider"
)

const (
	formerName, newName = "c1", "c2"
	adminToken          = "admin-token-0123456789"
	componentToken      = "component-token-0123456789"
	outsiderToken       = "outsider-token-0123456789"
)

// accessFiles are files of the centre and tokens by name. The user component may act for both
// names of the cluster, outsider for the former one only.
var accessFiles = map[string]string{
	"access.yaml": `{admins: [platform], registrants: [team], clusters: [{name: c1, users: [component, outsider]}, {name: c2, users: [component]}]}`,
	"tokens.yaml": fmt.Sprintf(`[{token: %s, user: alice, groups: [platform, team]}, {token: %s, user: component}, {token: %s, user: outsider}]`,
		adminToken, componentToken, outsiderToken),
	"component": componentToken, "outsider": outsiderToken, "pod": "token-of-the-pod",
}

// A permission centre with its store, an init-action-server and the code of the init container
// run over HTTP. The API server is fake.
func TestARenamedClusterLeaksItsGrantsAndNeverReportsThemRevoked(t *testing.T) {
	for name, tc := range map[string]struct {
		// account has the token of the components after the change.
		account string
		// again: the init container of the pod runs again under the new name.
		again bool
		// unauthorized: the pod ended before the init-action-server wrote that its permissions
		// were granted.
		unauthorized bool
		// events are texts of the Events PermissionLeaked.
		events []string
	}{
		"the centre has no application under the new name": {"component", false, false, []string{"permissions under cluster name c1; this cluster does not revoke them"}},
		"the pod was not reported as authorized":           {"component", false, true, []string{"permissions under cluster name c1; this cluster does not revoke them"}},
		"the centre does not know the new name":            {"outsider", false, false, []string{"may act for cluster c1, not for c2"}},
		"the pod was authorized again under the new name": {"component", true, false,
			[]string{"under another name of its cluster, and only that name can revoke it", "permissions under cluster name c1; this cluster does not revoke them"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newRenamedFixture(t)
			f.authorize(formerName, "component")
			granted := f.double.Stats().Current
			if len(granted) != 1 {
				t.Fatalf("the provider has %+v", granted)
			}
			f.ageApplications()
			if tc.again {
				f.authorize(newName, tc.account)
			}

			if tc.unauthorized {
				f.setAuthorized(corev1.ConditionFalse)
			}
			w := f.controller(newName, tc.account)
			if protected, requeued := w.reconcile(t); !protected || !requeued {
				t.Errorf("before the deadline: protected %t, requeued %t", protected, requeued)
			}
			if tc.again {
				f.await("the grant under the new name is leaked", func() bool { return f.state(newName) == api.Leaked })
			}
			w.clock.SetTime(zero.Add(5 * time.Minute))
			f.await("the finalizer is removed", func() bool { protected, _ := w.reconcile(t); return !protected })
			events := w.events()
			if strings.Contains(events, podmeta.ReasonPermissionRevoked) || strings.Count(events, podmeta.ReasonPermissionLeaked) != len(tc.events) {
				t.Errorf("events %q, want %d leaks", events, len(tc.events))
			}
			for _, text := range tc.events {
				if !strings.Contains(events, text) {
					t.Errorf("events %q, want a leak with %q", events, text)
				}
			}
			if len(w.sink.types) != len(tc.events) || slices.ContainsFunc(w.sink.types, func(sent string) bool { return !strings.Contains(sent, "permission.leaked") }) {
				t.Errorf("sent %v, want permission.leaked", w.sink.types)
			}
			if revoked, err := f.report(newName, tc.account); revoked != 0 {
				t.Errorf("a report under the new name revokes %d applications, %v", revoked, err)
			}
			if stats, state := f.double.Stats(), f.state(formerName); stats.Revoked != 0 || !cmp.Equal(granted, stats.Current) || state != api.Granted {
				t.Errorf("the application of the former name is %s, and the provider has %+v", state, stats)
			}

			// A report under the former name is old enough to revoke.
			if revoked, err := f.report(formerName, "component"); err != nil || revoked != 1 {
				t.Errorf("a report under the former name revokes %d applications, %v", revoked, err)
			}
			f.await("the application of the former name is revoked", func() bool { return f.state(formerName) == api.Revoked })
			if tc.again {
				f.await("the leak ends", func() bool { return f.state(newName) == api.Revoked })
			}
			if stats := f.double.Stats(); stats.Revoked != 1 || len(stats.Current) != 0 {
				t.Errorf("the provider has %+v", stats)
			}
		})
	}
}

// renamedFixture is a permission centre, a provider and a cluster with the pod web.
type renamedFixture struct {
	*fixture
	t          *testing.T
	double     *double.Double
	dir, url   string
	stopCentre func()
}

func newRenamedFixture(t *testing.T) *renamedFixture {
	t.Helper()
	f := &renamedFixture{fixture: newFixture(t, pod(phase(corev1.PodPending)), nil), t: t, double: double.New(time.Now), dir: t.TempDir()}
	for name, text := range accessFiles {
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range []runtime.Object{
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "sys", Name: podbreaker.PrimaryName, ResourceVersion: "1"}},
	} {
		if err := f.kube.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	f.kube.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		r := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		r.Status = authenticationv1.TokenReviewStatus{Authenticated: true, Audiences: r.Spec.Audiences, User: authenticationv1.UserInfo{
			Username: "system:serviceaccount:default:default", Extra: map[string]authenticationv1.ExtraValue{
				"authentication.kubernetes.io/pod-name": {"web"}, "authentication.kubernetes.io/pod-uid": {"uid"}}}}
		return true, r, nil
	})
	f.startCentre()
	f.register()
	return f
}

// startCentre starts a centre with the store of its predecessor.
func (f *renamedFixture) startCentre() {
	f.t.Helper()
	port, err := freeport.Find(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	c, err := centre.New(f.t.Context(), centre.Config{
		Listen: address, AdminListen: "127.0.0.1:0", Store: f.store(), CredentialsDir: f.dir, AccessFile: filepath.Join(f.dir, "access.yaml"),
		TokensFile: filepath.Join(f.dir, "tokens.yaml"), ProviderHosts: []string{"127.0.0.1"}, ProviderNetworks: []string{"127.0.0.0/8"},
		ConcurrentCallsPerProvider: 4, DrainTimeout: 5 * time.Second, Retention: time.Hour,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx); close(ended) }()
	f.url, f.stopCentre = "http://"+address, func() {
		cancel()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
	}
	f.t.Cleanup(f.stopCentre)
	f.await("the centre listens", func() bool {
		connection, err := (&net.Dialer{}).DialContext(f.t.Context(), "tcp", address)
		return err == nil && connection.Close() == nil
	})
}

func (f *renamedFixture) store() string { return "sqlite:" + filepath.Join(f.dir, "centre.db") }

// ageApplications makes all applications older than a list of pods, and restarts the centre.
func (f *renamedFixture) ageApplications() {
	f.t.Helper()
	f.stopCentre()
	s, err := store.Open(f.t.Context(), f.store())
	if err != nil {
		f.t.Fatal(err)
	}
	age := (5 * time.Minute).Microseconds()
	_, err = s.Writer().ExecContext(f.t.Context(), fmt.Sprintf("UPDATE applications SET created = created - %[1]d, asked = asked - %[1]d", age))
	s.Close()
	if err != nil {
		f.t.Fatal(err)
	}
	f.startCentre()
}

// register registers a permission set at the provider.
func (f *renamedFixture) register() {
	f.t.Helper()
	server := httptest.NewServer(f.double)
	f.t.Cleanup(server.Close)
	provider := double.Registration("double", server.URL, "platform")
	provider.RateLimit, provider.AllowHTTP, provider.TimeoutSeconds = api.RateLimit{PerSecond: 1000, Burst: 10}, true, 2
	provider.Retry = api.Retry{MaxCalls: 3, BackoffSeconds: 0.05, PollSeconds: 0.1}
	for _, o := range []struct {
		path   string
		object any
	}{
		{"/v1/providers", provider},
		{"/v1/permissions", api.Permission{Meta: api.Meta{Name: "db", Owner: "team"}, Provider: "double", Parameters: map[string]string{"name": "db"}}},
		{"/v1/permissionsets", api.PermissionSet{Meta: api.Meta{Name: "orders", Owner: "team"}, Permissions: []string{"db"}, Pods: []api.PodPattern{{Namespace: "*"}}}},
	} {
		body, err := json.Marshal(o.object)
		if err != nil {
			f.t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.url+o.path, bytes.NewReader(body))
		if err != nil {
			f.t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+adminToken)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			f.t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		if _ = response.Body.Close(); err != nil || response.StatusCode >= http.StatusBadRequest {
			f.t.Fatalf("register %s: %d %s, %v", o.path, response.StatusCode, text, err)
		}
	}
}

// client returns a client of the centre with the token of an account.
func (f *renamedFixture) client(account string) *centreclient.Client {
	return centreclient.New(centreclient.Options{URL: func() string { return f.url }, TokenFile: filepath.Join(f.dir, account), ClusterUID: "uid-of-kube-system"})
}

// authorize starts the init-action-server with a name of the cluster and runs the init
// container of the pod.
func (f *renamedFixture) authorize(name, account string) {
	f.t.Helper()
	s, records := settings.Default(), cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	s.Cluster = name
	handler := initserver.New(initserver.Options{
		Kube: f.kube, Pods: f.pods, Notifier: notifier.New(), Centre: f.client(account), Settings: func() settings.Settings { return s },
		Breaker: podbreaker.New("sys", f.kube.CoreV1(), corelisters.NewConfigMapLister(records), func() podbreaker.Policy { return s.Breaker }),
		Clock:   clock.RealClock{}, Random: rand.Float64, Recorder: record.NewFakeRecorder(100), Events: &eventSink{}, Meter: noop.Meter{},
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = "10.0.0.1:1234" // the address of the pod
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	c := initclient.New(initclient.Config{URL: server.URL + protocol.AuthorizePath, Sets: []string{"orders"}, TokenFile: filepath.Join(f.dir, "pod"), Deadline: time.Minute}, io.Discard)
	if result := c.Run(f.t.Context()); result.Code != protocol.ExitGranted {
		f.t.Fatalf("the init container ends with %+v", result)
	}
	if p := f.podOfFixture(); podmeta.Condition(p, podmeta.ConditionAuthorized).Status != corev1.ConditionTrue {
		f.t.Fatalf("the pod is not authorized: %+v", p.Status.Conditions)
	}
}

func (f *renamedFixture) podOfFixture() *corev1.Pod {
	f.t.Helper()
	p, err := f.kube.CoreV1().Pods("default").Get(f.t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return p
}

// setAuthorized sets the status of the pod's condition Authorized.
func (f *renamedFixture) setAuthorized(status corev1.ConditionStatus) {
	f.t.Helper()
	p := f.podOfFixture()
	podmeta.Condition(p, podmeta.ConditionAuthorized).Status = status
	if _, err := f.kube.CoreV1().Pods("default").UpdateStatus(f.t.Context(), p, metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// controller starts a controller with a name of the cluster after the pod has ended.
func (f *renamedFixture) controller(name, account string) *fixture {
	f.t.Helper()
	p := f.podOfFixture()
	p.Status.Phase = corev1.PodFailed
	w, s := newFixture(f.t, p, nil), settings.Default()
	s.Cluster = name
	w.Reconciler.centre, w.settings = f.client(account), func() settings.Settings { return s }
	namespaces := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, n := range []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, {ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "uid-of-kube-system"}}} {
		if err := namespaces.Add(n); err != nil {
			f.t.Fatal(err)
		}
	}
	w.namespaces = corelisters.NewNamespaceLister(namespaces)
	return w
}

// report reports the existing pods, of which there are none, and returns how many applications
// are revoked.
func (f *renamedFixture) report(name, account string) (int, error) {
	w := f.controller(name, account)
	tasks := &periodicTasks{Reconciler: w.Reconciler, podReportReceiver: f.client(account)}
	revoked, unconfirmed, err := tasks.sendPodReport(f.t.Context(), time.Now())
	if unconfirmed != 0 {
		f.t.Errorf("%d applications need a confirmation", unconfirmed)
	}
	return revoked, err
}

// state returns the state of the pod's application under a name of the cluster.
func (f *renamedFixture) state(name string) api.State {
	f.t.Helper()
	all, err := f.client("component").ListByPod(f.t.Context(), name, "uid")
	if err != nil || len(all) != 1 {
		f.t.Fatalf("applications of %s: %+v, %v", name, all, err)
	}
	return all[0].State
}

func (f *renamedFixture) await(what string, met func() bool) {
	f.t.Helper()
	err := wait.PollUntilContextTimeout(f.t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) { return met(), nil })
	if err != nil {
		f.t.Fatalf("%s: %v", what, err)
	}
}

// The name is corrected before the deadline of the pod.
func TestAPodOfARenamedClusterIsRevokedIfTheNameIsCorrected(t *testing.T) {
	f := newRenamedFixture(t)
	f.authorize(formerName, "component")
	w := f.controller(newName, "component")
	if protected, requeued := w.reconcile(t); !protected || !requeued {
		t.Fatalf("under the wrong name: protected %t, requeued %t", protected, requeued)
	}
	w.settings = f.controller(formerName, "component").settings
	f.await("the finalizer is removed", func() bool { protected, _ := w.reconcile(t); return !protected })
	if events := w.events(); !strings.Contains(events, podmeta.ReasonPermissionRevoked) || strings.Contains(events, podmeta.ReasonPermissionLeaked) {
		t.Errorf("events %q, want a revocation", events)
	}
	if stats := f.double.Stats(); stats.Revoked != 1 || len(stats.Current) != 0 {
		t.Errorf("the provider has %+v", stats)
	}
}
