package admission

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/webhook"

	"github.com/breakwater-dev/breakwater/internal/webhookpath"
)

// Mux routes each request to the handler of the webhook in its path.
//
// For knative's webhook, Mux is one admission controller. Knative runs a leader
// election per admission controller, and only the reconciler of the webhook
// configurations needs one.
type Mux struct {
	// find returns the handler of a webhook.
	find     func(webhook string) (Handler, bool)
	requests Requests
}

var _ webhook.AdmissionController = (*Mux)(nil)

// NewMux returns a Mux. find returns the handler of a webhook by name; the set of
// handlers may change at run time.
func NewMux(meter metric.Meter, find func(webhook string) (Handler, bool)) *Mux {
	return &Mux{find: find, requests: NewRequests(meter)}
}

// Path implements webhook.AdmissionController. It matches the whole subtree.
func (*Mux) Path() string { return webhookpath.Prefix }

// Known answers requests for unknown webhooks with 404, and calls next with the others. A replica of another version, or
// one that has read a new workload kind earlier, may have more webhooks. The API server applies the failurePolicy of a
// webhook to an error, and not to a denial.
func (m *Mux) Known(logger *zap.SugaredLogger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := webhookName(r)
		if _, known := m.find(name); !known {
			logger.Warnw("A request for an unknown webhook gets status 404; the failurePolicy decides", "webhook", name)
			http.Error(w, fmt.Sprintf("unknown webhook %q", name), http.StatusNotFound)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Admit implements webhook.AdmissionController.
func (m *Mux) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	name := webhookName(apis.GetHTTPRequest(ctx))
	handler, ok := m.find(name)
	if !ok { // its kind was just removed
		return Deny(DecisionError, metav1.Status{
			Code:    http.StatusNotFound,
			Reason:  metav1.StatusReasonNotFound,
			Message: fmt.Sprintf("unknown webhook %q", name),
		}).Response
	}
	answer := handler.Admit(ctx, req)
	m.requests.Count(ctx, name, req, answer)
	return answer.Response
}

func webhookName(r *http.Request) string {
	if r == nil {
		return ""
	}
	return strings.TrimPrefix(r.URL.Path, webhookpath.Prefix)
}
