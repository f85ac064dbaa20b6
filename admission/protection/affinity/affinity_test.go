package affinity

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/apis"
	certresources "knative.dev/pkg/webhook/certificates/resources"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/internal/webhookpeers"
	"github.com/breakwater-dev/breakwater/test/freeport"
)

const (
	path   = "/admission/v.kb.io"
	server = "webhook.system.svc"
	local  = "Local"
)

// localHandler decides in this replica. It records the deadline of its context.
type localHandler struct{ until *time.Time }

func (h localHandler) Admit(ctx context.Context, _ *admissionv1.AdmissionRequest) admission.Answer {
	ctx, cancel := admission.WithDeadline(ctx)
	defer cancel()
	*h.until, _ = ctx.Deadline()
	return admission.Allow(local)
}

// peers has one peer for every namespace, or none.
type peers struct{ Peer }

func (p peers) DecidingPeer(string) Peer { return p.Peer }

// peerFunc implements Peer by a function.
type peerFunc func(*http.Request) (*http.Response, error)

func (d peerFunc) Do(r *http.Request) (*http.Response, error) { return d(r) }

// decides is a peer that denies every request, as a webhook does.
func decides(t *testing.T) peerFunc {
	return func(r *http.Request) (*http.Response, error) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		if r.URL.Path != path || r.Header.Get(forwardedHeader) == "" || review.Request.Name != "web-1" {
			t.Errorf("called %s with headers %v for %s", r.URL, r.Header, review.Request.Name)
		}
		if wait, err := time.ParseDuration(r.URL.Query().Get("timeout")); err != nil || wait <= 0 || wait > forwardTimeout {
			t.Errorf("timeout %q, %v", r.URL.Query().Get("timeout"), err)
		}
		w := httptest.NewRecorder()
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "by the deciding replica"}}
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
		return w.Result(), nil
	}
}

func respond(status int, body string) peerFunc {
	return func(*http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		w.WriteHeader(status)
		if _, err := w.WriteString(body); err != nil {
			return nil, err
		}
		return w.Result(), nil
	}
}

func TestAReplicaDecidesWhatItCannotForward(t *testing.T) {
	silent := peerFunc(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	for name, tc := range map[string]struct {
		peer      Peer
		forwarded bool
		concerns  bool
		want      string
	}{
		"the deciding replica":                          {decides(t), false, true, DecisionForwarded},
		"this replica, which decides":                   {nil, false, true, local},
		"this replica, a forwarded request":             {decides(t), true, true, local},
		"this replica, a request that is not forwarded": {decides(t), false, false, local},
		"this replica, after a timeout":                 {silent, false, true, local},
		"this replica, after an error":                  {respond(http.StatusInternalServerError, ""), false, true, local},
		"this replica, after an invalid response":       {respond(http.StatusOK, "<html>"), false, true, local},
		"this replica, after the response to another request": {
			respond(http.StatusOK, `{"response":{"uid":"another","allowed":true}}`), false, true, local,
		},
		"this replica, after an undecided response": {
			respond(http.StatusOK, `{"response":{"uid":"r","allowed":false,"status":{"details":{"causes":[{"reason":"Undecided"}]}}}}`), false, true, local,
		},
		"this replica, after an empty response": {respond(http.StatusOK, `{}`), false, true, local},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := &http.Request{URL: &url.URL{Path: path, RawQuery: "timeout=5s"}, Header: http.Header{}}
				if tc.forwarded {
					MarkForwarded(asked.Header)
				}
				began, until := time.Now(), time.Time{}
				f := Forwarder{
					Next: localHandler{&until}, Matches: func(*admissionv1.AdmissionRequest) bool { return tc.concerns }, Peers: peers{tc.peer},
				}
				got := f.Admit(apis.WithHTTPRequest(t.Context(), asked), &admissionv1.AdmissionRequest{UID: "r", Name: "web-1", Namespace: "shop"})
				if got.Decision != tc.want {
					t.Errorf("got %s, want %s", got.Decision, tc.want)
				}
				if tc.want == DecisionForwarded && (got.Response.Allowed || got.Response.Result.Message != "by the deciding replica") {
					t.Errorf("got %+v", got.Response)
				}
				if took := time.Since(began); took > forwardTimeout {
					t.Errorf("it took %s", took)
				}
				// The API server waits for 5 s, including the time for forwarding.
				if tc.want == local && !until.Equal(began.Add(5*time.Second)) {
					t.Errorf("the deadline is %s after the request", until.Sub(began))
				}
			})
		})
	}
}

// testbed is a webhook with several replicas, one of which is real.
type testbed struct {
	slices cache.Indexer
	secret *corev1.Secret
	*Replicas
}

func newTestbed(t *testing.T, self string) *testbed {
	t.Helper()
	secret, err := certresources.MakeSecret(t.Context(), "certs", "system", "webhook")
	if err != nil {
		t.Fatal(err)
	}
	b := &testbed{slices: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), secret: secret}
	b.Replicas = NewReplicas(self, server, discoverylisters.NewEndpointSliceLister(b.slices), func() (*corev1.Secret, error) { return b.secret, nil })
	return b
}

// are sets the port of the replicas and whether each is ready.
func (b *testbed) are(t *testing.T, port int, ready map[string]bool) {
	t.Helper()
	s := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "webhook-1"},
		Ports:      []discoveryv1.EndpointPort{{Name: new("http-metrics"), Port: new(int32(1))}, {Name: new(webhookpeers.Port), Port: new(int32(port))}},
	}
	for name, is := range ready {
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{"127.0.0.1"}, TargetRef: &corev1.ObjectReference{Name: name}, Conditions: discoveryv1.EndpointConditions{Ready: &is},
		})
	}
	if err := b.slices.Update(s); err != nil {
		t.Fatal(err)
	}
}

func TestNamespacesAreDividedAmongReadyReplicas(t *testing.T) {
	both := map[string]bool{"a": true, "b": true}
	for name, tc := range map[string]struct {
		replicas map[string]bool
		// least and most bound how many of 1000 namespaces another replica decides.
		least, most int
	}{
		"no replica known":          {nil, 0, 0},
		"one replica":               {map[string]bool{"a": true}, 0, 0},
		"two replicas":              {both, 300, 700},
		"one of two is not ready":   {map[string]bool{"a": true, "b": false}, 0, 0},
		"this replica is not ready": {map[string]bool{"a": false, "b": true}, 1000, 1000},
		"three replicas":            {map[string]bool{"a": true, "b": true, "c": true}, 500, 800},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTestbed(t, "a")
			r.are(t, 8443, tc.replicas)
			others := 0
			for n := range 1000 {
				if r.DecidingPeer("ns-"+strconv.Itoa(n)) != nil {
					others++
				}
			}
			if others < tc.least || others > tc.most {
				t.Errorf("another replica decides %d of 1000 namespaces", others)
			}
		})
	}
	one, other := newTestbed(t, "a"), newTestbed(t, "b")
	one.are(t, 8443, both)
	other.are(t, 8443, both)
	for n := range 1000 {
		ns := "ns-" + strconv.Itoa(n)
		if (one.DecidingPeer(ns) == nil) == (other.DecidingPeer(ns) == nil) {
			t.Fatalf("both replicas, or none, decide namespace %s", ns)
		}
	}
}

// serve starts a replica with the certificate of a Secret.
func serve(t *testing.T, secret *corev1.Secret, hits *atomic.Int64) (port int) {
	t.Helper()
	certificate, err := tls.X509KeyPair(secret.Data[certresources.ServerCert], secret.Data[certresources.ServerKey])
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().(*net.TCPAddr).Port
}

func get(t *testing.T, p Peer) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := p.Do(req)
	if err == nil {
		err = res.Body.Close()
	}
	return err
}

func TestThePeersCertificateIsVerified(t *testing.T) {
	b := newTestbed(t, "a")
	var hits atomic.Int64
	b.are(t, serve(t, b.secret, &hits), map[string]bool{"b": true})
	if err := get(t, b.DecidingPeer("shop")); err != nil {
		t.Error(err)
	}
	// After a renewal the old certificate is not accepted anymore.
	renewed, err := certresources.MakeSecret(t.Context(), "certs", "system", "webhook")
	if err != nil {
		t.Fatal(err)
	}
	old := b.secret
	b.secret = renewed
	b.client.CloseIdleConnections()
	if err := get(t, b.DecidingPeer("shop")); err == nil {
		t.Error("a peer with another certificate is accepted")
	}
	b.secret = old
	if err := get(t, b.DecidingPeer("shop")); err != nil || hits.Load() != 2 {
		t.Errorf("called %d times, %v", hits.Load(), err)
	}
}

func TestADeadPeerIsNotCalled(t *testing.T) {
	b := newTestbed(t, "a")
	var hits atomic.Int64
	port := serve(t, b.secret, &hits)
	dead, err := freeport.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.are(t, dead, map[string]bool{"b": true})
	for range maxFailures {
		if err := get(t, b.DecidingPeer("shop")); err == nil {
			t.Fatal("a dead peer answers")
		}
	}
	if err := get(t, b.DecidingPeer("shop")); err == nil || err.Error() != "circuit breaker is open" {
		t.Errorf("got %v", err)
	}
	// Its replacement is called at once, and the old breaker is deleted.
	b.are(t, port, map[string]bool{"b": true})
	if err := get(t, b.DecidingPeer("shop")); err != nil || len(b.breakers) != 1 {
		t.Errorf("%v, %d breakers", err, len(b.breakers))
	}
}
