package admission

import (
	"context"
	"strconv"

	"go.opentelemetry.io/otel/metric"
	admissionv1 "k8s.io/api/admission/v1"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/internal/metrics"
)

// Requests counts and logs the requests that webhooks decided.
type Requests struct{ total metrics.Counter }

// NewRequests returns Requests.
func NewRequests(meter metric.Meter) Requests {
	return Requests{metrics.NewCounter(meter, "breakwater_admission_requests_total")}
}

// Count counts a request that a webhook decided.
func (r Requests) Count(ctx context.Context, webhook string, req *admissionv1.AdmissionRequest, answer Answer) {
	dryRun, _ := DryRun(req) // an eviction that cannot be decoded counts as the request says
	r.total.Add(ctx, 1, webhook, answer.Decision, strconv.FormatBool(answer.Response.Allowed), strconv.FormatBool(dryRun))
	logging.FromContext(ctx).Infow("answered", "webhook", webhook, "decision", answer.Decision, "allowed", answer.Response.Allowed)
}
