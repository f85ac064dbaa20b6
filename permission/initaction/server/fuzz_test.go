package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/breakwater-dev/breakwater/permission/initaction/protocol"
	"github.com/breakwater-dev/breakwater/permission/notifier"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

// FuzzAuthorize sends bodies of init containers. Only a body with the sets of the pod is
// accepted, and each answer is JSON with a state and a reason.
func FuzzAuthorize(f *testing.F) {
	f.Add("Bearer pod", "application/json", `{"sets":["orders"]}`)
	f.Add("Bearer pod", "application/json; charset=utf-8", `{"sets":["orders","orders"]}`)
	f.Add("bearer pod ", "application/x-www-form-urlencoded", `sets=orders`)
	f.Add("Bearer pod", "application/xml", `<Request><Sets>orders</Sets></Request>`)
	f.Add("Bearer pod", "application/json", `{"sets":["orders"]}}`)
	f.Add("Bearer pod", "application/json", `{"sets":null}`)
	f.Add("Bearer pod", "", ``)
	f.Add("Bearer other", "application/json", `{"sets":["orders"]}`)
	f.Add("Bearer pod", "application/json", `{"sets":["`+strings.Repeat("a", 1<<20)+`"]}`)
	handler := newDrainingServer(f)
	f.Fuzz(func(t *testing.T, authorization, contentType, body string) {
		r := httptest.NewRequest(http.MethodPost, protocol.AuthorizePath, strings.NewReader(body))
		r.RemoteAddr = "127.0.0.1:12345"
		r.Header["Authorization"], r.Header["Content-Type"] = []string{authorization}, []string{contentType}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		var answer protocol.Answer
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.State == "" || answer.Reason == "" || w.Body.Len() > 4096 {
			t.Errorf("status %d: %.500q, %v", w.Code, w.Body, err)
		}
		var request protocol.Request
		decoded := json.Unmarshal([]byte(body), &request) == nil
		switch {
		case answer.Reason == reasonDraining && (!decoded || !slices.Equal(request.Sets, []string{"orders"})):
			t.Errorf("accepted %.200q: %+v", body, answer)
		case answer.Reason != reasonDraining && (w.Code < 400 || w.Code >= 500 || answer.State != protocol.Failed):
			t.Errorf("%.200q is answered %d: %+v", body, w.Code, answer)
		}
	})
}

// newDrainingServer returns a server with pod default/web, which is shutting down: it ends each call that it would accept.
func newDrainingServer(f *testing.F) http.Handler {
	f.Helper()
	kube := fake.NewClientset()
	kube.PrependReactor("create", "tokenreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		r := a.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenReview).DeepCopy()
		r.Status = authenticationv1.TokenReviewStatus{Authenticated: r.Spec.Token == "pod", User: bound("web", "uid"), Audiences: r.Spec.Audiences}
		return true, r, nil
	})
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := pods.Add(newPod(nil)); err != nil {
		f.Fatal(err)
	}
	draining := make(chan struct{})
	close(draining)
	s := settings.Default()
	s.UnauthenticatedRequestsPerMinute = 0 // unlimited
	records := corelisters.NewConfigMapLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}))
	return New(Options{
		Kube: kube, Pods: corelisters.NewPodLister(pods), Notifier: notifier.New(), Clock: fastClock{start: time.Now()}, Random: func() float64 { return 0 },
		Breaker:  podbreaker.New("sys", kube.CoreV1(), records, func() podbreaker.Policy { return s.Breaker }),
		Settings: func() settings.Settings { return s }, Recorder: record.NewFakeRecorder(1), Meter: noop.Meter{}, Draining: draining,
	})
}
