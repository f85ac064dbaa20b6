package admission

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/metric"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/webhook"

	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/webhookpath"
)

// Mux routes each request to the handler of the webhook in its path.
//
// For knative's webhook, Mux is one admission controller. Knative runs a leader
// election per admission controller, and only the caBundle reconciler needs one.
type Mux struct {
	// find returns the handler of a webhook.
	find func(webhook string) (Handler, bool)
	// requests counts the requests that a handler answered.
	requests metrics.Counter
}

var _ webhook.AdmissionController = (*Mux)(nil)

// NewMux returns a Mux. find returns the handler of a webhook by name; the set of
// handlers may change at run time.
func NewMux(meter metric.Meter, find func(webhook string) (Handler, bool)) *Mux {
	return &Mux{find: find, requests: metrics.NewCounter(meter, "breakwater_admission_requests_total")}
}

// Path implements webhook.AdmissionController. It matches the whole subtree.
func (*Mux) Path() string { return webhookpath.Prefix }

// Admit implements webhook.AdmissionController.
func (m *Mux) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	name := webhookName(apis.GetHTTPRequest(ctx))
	handler, ok := m.find(name)
	if !ok && strings.HasPrefix(name, "m") {
		// Another replica may have read a new workload kind earlier. Mutating
		// webhooks never deny.
		return Allow(DecisionError).Response
	}
	if !ok {
		return Deny(DecisionError, metav1.Status{
			Code:    http.StatusNotFound,
			Reason:  metav1.StatusReasonNotFound,
			Message: fmt.Sprintf("unknown webhook %q", name),
		}).Response
	}
	answer := handler.Admit(ctx, req)
	m.requests.Add(ctx, 1, name, answer.Decision, strconv.FormatBool(ptr.Deref(req.DryRun, false)))
	logging.FromContext(ctx).Infow("answered", "webhook", name, "decision", answer.Decision,
		"allowed", answer.Response.Allowed)
	return answer.Response
}

func webhookName(r *http.Request) string {
	if r == nil {
		return ""
	}
	return strings.TrimPrefix(r.URL.Path, webhookpath.Prefix)
}
