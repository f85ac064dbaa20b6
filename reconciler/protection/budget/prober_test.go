package budget

import (
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	kubefake "k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	testingclock "k8s.io/utils/clock/testing"
	"knative.dev/pkg/webhook/certificates/resources"

	changev1alpha1 "github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/webhookpeers"
)

// webhookFixture is a webhook with replicas that know each budget. The API server sends each dry run to dryRunTo.
type webhookFixture struct {
	*prober
	t    *testing.T
	now  *testingclock.FakePassiveClock
	kube *kubefake.Clientset
	fake *fake.Clientset
	// connections counts the direct ones.
	connections atomic.Int64
	certificate tls.Certificate
	dryRunTo    string
}

func newWebhookFixture(t *testing.T) *webhookFixture {
	secret, err := resources.MakeSecret(t.Context(), "certs", changev1alpha1.SystemNamespace, webhookService)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(secret.Data[resources.ServerCert], secret.Data[resources.ServerKey])
	if err != nil {
		t.Fatal(err)
	}
	now := testingclock.NewFakePassiveClock(time.Now())
	w := &webhookFixture{t: t, now: now, fake: fake.NewSimpleClientset(), certificate: certificate, dryRunTo: "a",
		kube: kubefake.NewClientset(&admissionregistrationv1.ValidatingWebhookConfiguration{
			ObjectMeta: metav1.ObjectMeta{Name: webhookConfiguration},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{ClientConfig: admissionregistrationv1.WebhookClientConfig{
				CABundle: secret.Data[resources.CACert], Service: &admissionregistrationv1.ServiceReference{Path: new("/budgets")}}}},
		})}
	w.prober = &prober{kube: w.kube, client: w.fake.PolicyV1alpha1(), clock: now, turns: newReplicaTurns(now),
		answered: map[string]sets.Set[string]{}, reached: map[string]time.Time{}}
	w.fake.PrependReactor("patch", "podunavailablebudgets", func(a k8stesting.Action) (bool, runtime.Object, error) {
		var asked metav1.PartialObjectMetadata
		if err := json.Unmarshal(a.(k8stesting.PatchAction).GetPatch(), &asked); err != nil {
			return true, nil, err
		}
		w.HandleWarningHeader(0, "", budget.ProbeAnswer{Probe: asked.Annotations[v1alpha1.ProbeAnnotation], Replica: w.dryRunTo}.String())
		return true, &v1alpha1.PodUnavailableBudget{}, nil
	})
	return w
}

// start starts a replica.
func (w *webhookFixture) start(name string) *httptest.Server {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		var review admissionv1.AdmissionReview
		var asked metav1.PartialObjectMetadata
		if err := json.NewDecoder(in.Body).Decode(&review); err != nil || json.Unmarshal(review.Request.Object.Raw, &asked) != nil {
			http.Error(out, "not a review", http.StatusBadRequest)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, Warnings: []string{
			budget.ProbeAnswer{Probe: asked.Annotations[v1alpha1.ProbeAnnotation], Replica: name}.String()}}
		_ = json.NewEncoder(out).Encode(review)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{w.certificate}, MinVersion: tls.VersionTLS13}
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			w.connections.Add(1)
		}
	}
	server.StartTLS()
	w.t.Cleanup(server.Close)
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.kube.DiscoveryV1().EndpointSlices(changev1alpha1.SystemNamespace).Create(w.t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: webhookService}},
		Ports:      []discoveryv1.EndpointPort{{Name: new(webhookpeers.Port), Port: new(int32(number))}},
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{host}, TargetRef: &corev1.ObjectReference{Name: name}}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return server
}

// end ends a replica.
func (w *webhookFixture) end(server *httptest.Server, name string) {
	server.Close()
	if err := w.kube.DiscoveryV1().EndpointSlices(changev1alpha1.SystemNamespace).Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// probeCost is what a probe costs.
type probeCost struct{ DryRuns, Reads, Connections int }

// probe probes a budget, and checks that these replicas are all and answer, and what it costs.
func (w *webhookFixture) probe(again bool, namespace string, want probeCost, replicas ...string) {
	w.t.Helper()
	w.kube.ClearActions()
	w.fake.ClearActions()
	w.connections.Store(0)
	b := newBudget(nil)
	b.Namespace = namespace
	answered, all, err := w.Probe(w.t.Context(), b, again)
	if err != nil {
		w.t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{replicas, replicas}, [][]string{sets.List(answered), sets.List(all)}); diff != "" {
		w.t.Errorf("replicas that answered, and all:\n%s", diff)
	}
	if diff := cmp.Diff(want, probeCost{len(w.fake.Actions()), len(w.kube.Actions()), int(w.connections.Load())}); diff != "" {
		w.t.Error(diff)
	}
}

func TestProbesThatAreRepeatedShareDryRunsReadsAndConnections(t *testing.T) {
	w := newWebhookFixture(t)
	w.start("a")
	b := w.start("b")
	w.probe(false, "shop", probeCost{1, 2, 1}, "a", "b")
	w.probe(false, "shop", probeCost{1, 2, 0}, "a", "b")
	w.probe(true, "shop", probeCost{0, 0, 1}, "a", "b") // a is probed directly for the first time
	w.probe(true, "shop", probeCost{0, 0, 0}, "a", "b")
	w.probe(true, "other", probeCost{1, 0, 0}, "a", "b")
	w.probe(true, "other", probeCost{0, 0, 0}, "a", "b")

	w.now.SetTime(w.now.Now().Add(webhookKnownFor))
	w.probe(true, "shop", probeCost{0, 2, 0}, "a", "b")
	w.now.SetTime(w.now.Now().Add(reachedFor))
	w.probe(true, "shop", probeCost{1, 2, 0}, "a", "b")

	w.end(b, "b")
	w.probe(true, "shop", probeCost{1, 2, 0}, "a") // after b did not answer
	w.start("c")
	w.probe(true, "shop", probeCost{0, 0, 0}, "a") // c knows all budgets since before it was ready
	w.probe(false, "shop", probeCost{1, 2, 1}, "a", "c")
}

func TestAReplacedReplicaIsNotMissedByARepeatedProbe(t *testing.T) {
	w := newWebhookFixture(t)
	w.start("a")
	b := w.start("b")
	w.probe(false, "shop", probeCost{1, 2, 1}, "a", "b")
	w.end(b, "b")
	w.start("c")
	w.dryRunTo = "c"
	w.probe(true, "other", probeCost{2, 2, 1}, "a", "c") // c answers the first dry run, a directly, and b does not
}
