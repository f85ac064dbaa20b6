package admission_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/admission"
)

type denying struct{}

func (denying) Admit(context.Context, *admissionv1.AdmissionRequest) admission.Answer {
	return admission.Deny("Denied", metav1.Status{Reason: "because"})
}

type admitting struct{}

func (admitting) Admit(context.Context, *admissionv1.AdmissionRequest) admission.Answer {
	return admission.Allow(admission.DecisionAdmitted)
}

func newMux(t *testing.T) (*admission.Mux, *metric.ManualReader) {
	t.Helper()
	reader := metric.NewManualReader()
	m := admission.NewMux(metric.NewMeterProvider(metric.WithReader(reader)).Meter("test"),
		func(name string) (admission.Handler, bool) {
			h, ok := map[string]admission.Handler{"no.kb.io": denying{}, "yes.kb.io": admitting{}}[name]
			return h, ok
		})
	return m, reader
}

func ask(t *testing.T, m *admission.Mux, path string, dryRun *bool) *admissionv1.AdmissionResponse {
	t.Helper()
	return admit(t, m, path, &admissionv1.AdmissionRequest{DryRun: dryRun})
}

func evict(t *testing.T, m *admission.Mux, body string) {
	t.Helper()
	admit(t, m, "/admission/yes.kb.io", &admissionv1.AdmissionRequest{SubResource: "eviction", Object: runtime.RawExtension{Raw: []byte(body)}})
}

func admit(t *testing.T, m *admission.Mux, path string, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	return m.Admit(apis.WithHTTPRequest(t.Context(), httptest.NewRequest(http.MethodPost, path+"?timeout=5s", nil)), req)
}

func TestTheMuxCallsTheWebhookOfThePath(t *testing.T) {
	m, _ := newMux(t)
	for path, want := range map[string]bool{
		"/admission/yes.kb.io": true,
		"/admission/no.kb.io":  false,
	} {
		if got := ask(t, m, path, nil); got.Allowed != want {
			t.Errorf("%s: allowed %v", path, got.Allowed)
		}
	}
}

// During an upgrade, the API server calls a new webhook also at former replicas.
func TestTheFailurePolicyOfAnUnknownWebhookDecides(t *testing.T) {
	m, _ := newMux(t)
	handler := m.Known(zap.NewNop().Sugar(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }))
	for path, want := range map[string]int{
		"/admission/yes.kb.io":    http.StatusOK,
		"/admission/no.kb.io":     http.StatusOK,
		"/admission/mother.kb.io": http.StatusNotFound,
		"/admission/vother.kb.io": http.StatusNotFound,
		"/admission/":             http.StatusNotFound,
	} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, path, nil))
		if answer.Code != want {
			t.Errorf("%s: status %d, want %d", path, answer.Code, want)
		}
	}
}

func TestAnswersAreCountedAndThoseToDryRunsApart(t *testing.T) {
	m, reader := newMux(t)
	ask(t, m, "/admission/no.kb.io", nil)
	ask(t, m, "/admission/no.kb.io", new(false))
	ask(t, m, "/admission/no.kb.io", new(true))
	ask(t, m, "/admission/yes.kb.io", nil)
	ask(t, m, "/admission/"+"invented", nil)
	// An eviction may say in its body only that it is a dry run.
	evict(t, m, `{"deleteOptions":{"dryRun":["All"]}}`)
	evict(t, m, `{"deleteOptions":{}}`)
	evict(t, m, `not JSON`)
	want := map[string]int64{
		"no.kb.io Denied false false":   2,
		"yes.kb.io Admitted true false": 3,
		"yes.kb.io Admitted true true":  1,
		"no.kb.io Denied false true":    1,
	}
	if diff := cmp.Diff(want, counts(t, reader)); diff != "" {
		t.Error(diff)
	}
}

func counts(t *testing.T, reader *metric.ManualReader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	found := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if !ok {
				t.Fatalf("%s is a %T", m.Name, m.Data)
			}
			for _, p := range sum.DataPoints {
				webhook, _ := p.Attributes.Value(attribute.Key("webhook"))
				decision, _ := p.Attributes.Value(attribute.Key("decision"))
				allowed, _ := p.Attributes.Value(attribute.Key("allowed"))
				dryRun, _ := p.Attributes.Value(attribute.Key("dry_run"))
				found[webhook.AsString()+" "+decision.AsString()+" "+allowed.AsString()+" "+dryRun.AsString()] = p.Value
			}
		}
	}
	return found
}
