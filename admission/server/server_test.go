package server

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel/metric/noop"
	_ "knative.dev/pkg/injection/clients/namespacedkube/informers/core/v1/secret/fake"
	rtesting "knative.dev/pkg/reconciler/testing"
	"knative.dev/pkg/webhook"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/server/webhookconfig"
)

func TestTheProcessAnswersARequestForAnUnknownWebhookWith404(t *testing.T) {
	ctx, _ := rtesting.SetupFakeContext(t)
	var p Process
	mux := admission.NewMux(noop.Meter{}, func(string) (admission.Handler, bool) { return nil, false })
	if _, err := NewController(webhook.WithOptions(ctx, webhook.Options{}), &p, &webhookconfig.Reconciler{}, mux); err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	p.handler.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/admission/mother.kb.io", nil))
	if answer.Code != http.StatusNotFound {
		t.Errorf("status %d, want %d", answer.Code, http.StatusNotFound)
	}
}
