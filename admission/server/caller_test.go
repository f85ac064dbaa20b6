package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	clientgotesting "k8s.io/client-go/tools/cache/testing"
	clocktesting "k8s.io/utils/clock/testing"
	certresources "knative.dev/pkg/webhook/certificates/resources"

	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/webhookpath"
)

const webhookName = "vpodbudget.kb.io"

var now = time.Date(2026, 11, 23, 12, 3, 0, 0, time.UTC)

type fixture struct {
	*callers
	clock      *clocktesting.FakePassiveClock
	key        string
	configured []string
	received   []*http.Request
}

func newFixture() *fixture {
	f := &fixture{clock: clocktesting.NewFakePassiveClock(now), key: "key"}
	f.callers = &callers{
		secret: func() (*corev1.Secret, error) {
			if f.key == "" {
				return nil, errors.New("not found")
			}
			return &corev1.Secret{Data: map[string][]byte{certresources.ServerKey: []byte(f.key)}}, nil
		},
		configured: func(path string) bool { return len(f.configured) > 0 && f.configured[0] == path },
		rejected:   metrics.NewCounter(noop.NewMeterProvider().Meter(""), "breakwater_admission_unauthenticated_requests_total"),
		reviews:    newReviews(),
		unread:     metrics.NewCounter(noop.NewMeterProvider().Meter(""), "breakwater_admission_unread_reviews_total"),
		clock:      f.clock,
	}
	return f
}

// post returns the status of a request. The fixture keeps what the webhooks receive.
func (f *fixture) post(path string) int {
	w := httptest.NewRecorder()
	f.handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { f.received = append(f.received, r) })).
		ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader("{}")))
	return w.Code
}

func pathAt(key string, at time.Time) string { return webhookpath.Path([]byte(key), webhookName, at) }

func TestARequestWithoutTheSecretPathReachesNoWebhook(t *testing.T) {
	f := newFixture()
	for _, path := range []string{"/", "/admission/", "/admission/" + webhookName, pathAt("another", now), pathAt("", now), pathAt("key", now) + "x"} {
		if got := f.post(path); got != http.StatusForbidden || len(f.received) > 0 {
			t.Errorf("%s: status %d, received %d", path, got, len(f.received))
		}
	}
}

func TestAWebhookReceivesThePathWithoutItsSecret(t *testing.T) {
	f := newFixture()
	path := pathAt("key", now)
	if got := f.post(path + "?timeout=5s"); got != http.StatusOK {
		t.Fatalf("status %d", got)
	}
	r := f.received[0]
	if r.URL.String() != "/admission/"+webhookName+"?timeout=5s" || r.RequestURI != r.URL.String() {
		t.Errorf("received %s, %s", r.URL, r.RequestURI)
	}
	if got := webhookpath.Of(r); got != path {
		t.Errorf("would be forwarded to %s, want %s", got, path)
	}
}

func TestAnOldPathIsAcceptedOnlyWhileItIsConfigured(t *testing.T) {
	f := newFixture()
	path := pathAt("key", now)
	f.clock.SetTime(now.Add(2 * webhookpath.PeriodLength))
	if got := f.post(path); got != http.StatusForbidden {
		t.Errorf("an old path: status %d", got)
	}
	f.configured = []string{path}
	if got := f.post(path); got != http.StatusOK {
		t.Errorf("an old path that is still configured: status %d", got)
	}
}

func TestPathsOfAReplacedCertificateAreAcceptedForAWhile(t *testing.T) {
	f := newFixture()
	old := pathAt("key", now)
	if got := f.post(old); got != http.StatusOK {
		t.Fatalf("status %d", got)
	}
	f.key = "renewed"
	if got := []int{f.post(old), f.post(pathAt("renewed", now))}; got[0] != http.StatusOK || got[1] != http.StatusOK {
		t.Errorf("after the renewal: %v", got)
	}
	f.key = "" // an unreadable Secret changes nothing
	if got := f.post(pathAt("renewed", now)); got != http.StatusOK {
		t.Errorf("without the Secret: %d", got)
	}
	f.clock.SetTime(now.Add(replacedKeyLife + time.Second))
	if got := f.post(old); got != http.StatusForbidden {
		t.Errorf("the replaced path after %s: %d", replacedKeyLife, got)
	}
}

func TestAReplicaWithoutARequestAcceptsPathsOfAReplacedCertificate(t *testing.T) {
	f := newFixture()
	source := clientgotesting.NewFakeControllerSource()
	informer := cache.NewSharedInformer(source, &corev1.Secret{}, 0)
	secret := func(key string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "sys", Name: "certs"}, Data: map[string][]byte{certresources.ServerKey: []byte(key)}}
	}
	f.secret = func() (*corev1.Secret, error) {
		all := informer.GetStore().List()
		if len(all) != 1 {
			return nil, errors.New("not found")
		}
		return all[0].(*corev1.Secret), nil
	}
	if err := f.watch(informer); err != nil {
		t.Fatal(err)
	}
	await := func(what string, condition func() bool) {
		t.Helper()
		if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
			return condition(), nil
		}); err != nil {
			t.Fatal("no " + what)
		}
	}
	current := func() []byte {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.callers.key
	}
	source.Add(secret("key"))
	go informer.RunWithContext(t.Context())
	await("key before a request", func() bool { return string(current()) == "key" })
	source.Modify(secret("renewed"))
	await("renewed key", func() bool { return string(current()) == "renewed" })
	if got := f.post(pathAt("key", now)); got != http.StatusOK {
		t.Errorf("the replaced path: status %d", got)
	}
}

func TestALargeReviewIsNotRead(t *testing.T) {
	f := newFixture()
	if f.post(pathAt("key", now)) != http.StatusOK {
		t.Fatal("not accepted")
	}
	r := httptest.NewRequest(http.MethodPost, pathAt("key", now), io.LimitReader(neverEnding('{'), maxReviewBytes+1))
	var err error
	f.handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, err = io.Copy(io.Discard, r.Body) })).
		ServeHTTP(httptest.NewRecorder(), r)
	if tooLarge := new(http.MaxBytesError); !errors.As(err, &tooLarge) {
		t.Errorf("got %v", err)
	}
}

// The API server escapes < in reviews, so a release may be six times as large there as in etcd.
func TestAReviewOfTwoObjectsThatEtcdStoresIsRead(t *testing.T) {
	const mostInEtcd = 3 << 19
	object := runtime.RawExtension{Raw: []byte(`{"data":"` + strings.Repeat("<", mostInEtcd) + `"}`)}
	body, err := json.Marshal(admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{Object: object, OldObject: object}})
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture()
	f.handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); err != nil || n != int64(len(body)) {
			t.Errorf("read %d of %d bytes: %v", n, len(body), err)
		}
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, pathAt("key", now), bytes.NewReader(body)))
}

type neverEnding byte

func (b neverEnding) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

// Clients that hold unauthenticated connections open do not keep the API server out: each
// further connection closes the oldest.
func TestIdleUnauthenticatedConnectionsAreClosed(t *testing.T) {
	f := newFixture()
	url, stop, ended := startServerWith(t, f.handler, func(http.ResponseWriter, *http.Request) {})
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	address := strings.TrimPrefix(url, "https://")
	var idle []net.Conn
	for range maxUnauthenticated + 50 {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		idle = append(idle, c)
	}
	closed, deadline := 0, time.Now().Add(headerTimeout/2)
	for _, c := range idle[:50] {
		_ = c.SetReadDeadline(deadline)
		if _, err := c.Read(make([]byte, 1)); err != nil && !errors.Is(err, net.ErrClosed) && !isTimeout(err) {
			closed++
		}
	}
	if closed != 50 {
		t.Errorf("the server closed %d of the 50 oldest connections", closed)
	}
	client := apiServer()
	for range 20 {
		if _, err := post(client, url+pathAt("key", now)); err != nil {
			t.Fatal(err)
		}
	}
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
