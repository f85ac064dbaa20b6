package server

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel/metric/noop"
	admissionv1 "k8s.io/api/admission/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/admission"
)

func TestAProcessThatEndsAnswersAndSendsConnectionsAway(t *testing.T) {
	mux := admission.NewMux(noop.Meter{}, func(string) (admission.Handler, bool) { return nil, false })
	ending := make(chan struct{})
	s := Server{nil, mux, ending}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.Admit(apis.WithHTTPRequest(r.Context(), r), &admissionv1.AdmissionRequest{}) == nil {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer web.Close()
	closes := func() bool {
		res, err := web.Client().Get(web.URL)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode != http.StatusOK {
			t.Errorf("answered %d", res.StatusCode)
		}
		return res.Close
	}
	if closes() {
		t.Error("closes a connection while it is to go on")
	}
	close(ending)
	if !closes() {
		t.Error("keeps a connection though it is to end")
	}
}
