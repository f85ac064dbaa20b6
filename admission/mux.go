package admission

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/webhook"
)

// PathPrefix stands before a webhook's name in the path of its clientConfig.
const PathPrefix = "/admission/"

// Mux hands each request to the handler of the webhook that its path names.
//
// To knative's webhook it is one admission controller: it wants a leader
// election for each, and only one has anything to elect (the bookkeeper).
type Mux struct {
	// find returns the handler of a webhook.
	find func(webhook string) (Handler, bool)
	// admissions counts answers by webhook and decision; dryRuns those to
	// requests that were only asking.
	admissions, dryRuns metric.Int64Counter
}

var _ webhook.AdmissionController = (*Mux)(nil)

// NewMux returns a Mux for the handlers that find returns by the name of their
// webhook. Which there are may change while it runs.
func NewMux(meter metric.Meter, find func(webhook string) (Handler, bool)) (*Mux, error) {
	admissions, err := meter.Int64Counter("breakwater.admissions",
		metric.WithDescription("Answers to admission requests, without dry runs"))
	if err != nil {
		return nil, fmt.Errorf("create counter: %w", err)
	}
	dryRuns, err := meter.Int64Counter("breakwater.admissions.dryrun",
		metric.WithDescription("Answers to admission requests that were dry runs"))
	if err != nil {
		return nil, fmt.Errorf("create counter: %w", err)
	}
	return &Mux{find: find, admissions: admissions, dryRuns: dryRuns}, nil
}

// Path implements webhook.AdmissionController: the whole subtree.
func (*Mux) Path() string { return PathPrefix }

// Admit implements webhook.AdmissionController.
func (m *Mux) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	name := webhookOf(apis.GetHTTPRequest(ctx))
	handler, ok := m.find(name)
	if !ok && strings.HasPrefix(name, "m") {
		// A kind of workload that another replica heard of earlier. A mutating
		// webhook never stands in anybody's way.
		return Allow(DecisionError).Response
	}
	if !ok {
		return Deny(DecisionError, metav1.Status{
			Code:    http.StatusNotFound,
			Reason:  metav1.StatusReasonNotFound,
			Message: fmt.Sprintf("no webhook %q is served here", name),
		}).Response
	}
	answer := handler.Admit(ctx, req)
	counter := m.admissions
	if ptr.Deref(req.DryRun, false) {
		counter = m.dryRuns
	}
	counter.Add(ctx, 1, metric.WithAttributes(
		attribute.String("webhook", name), attribute.String("decision", answer.Decision)))
	logging.FromContext(ctx).Infow("answered", "webhook", name, "decision", answer.Decision,
		"allowed", answer.Response.Allowed)
	return answer.Response
}

func webhookOf(r *http.Request) string {
	if r == nil {
		return ""
	}
	return strings.TrimPrefix(r.URL.Path, PathPrefix)
}
