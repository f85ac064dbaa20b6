// Package deletion decides the requests of the webhooks of budgets: by budgets, and a
// deletion of a pod then by flow control.
//
// In a namespace with budgets the API server calls only the webhook of budgets for
// pods, and in all others only that of flow control. Two webhooks would be called in
// parallel, and each would count requests that the other denies: a drain that retries
// blocked pods would count deletions that never happen. For the same reason, flow control does not count the
// deletion of a namespace that is protected from cascading deletion.
package deletion

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/protection/budget"
	"github.com/breakwater-dev/breakwater/admission/protection/deletionflow"
)

// DecisionFlowControl means that the budgets allowed the request and flow control
// denied it. It is a label of the admission metric of the webhook of budgets.
const DecisionFlowControl = "FlowControl"

// FlowControl decides whether a deletion is within the limits, and counts it.
type FlowControl interface {
	admission.Handler
	// LikelyDenies reports whether the request is likely to be denied.
	LikelyDenies(*admissionv1.AdmissionRequest) bool
}

// Handler decides the requests of the webhooks of budgets.
type Handler struct {
	Budgets     budget.Guard
	FlowControl FlowControl
	// ConfigurationExists reports that nobody has disabled flow control by deleting its
	// configuration.
	ConfigurationExists func() bool
	// Requests counts the decisions of flow control.
	Requests admission.Requests
}

var _ admission.Handler = Handler{}

// Admit implements admission.Handler.
func (h Handler) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	if !deletesPod(req) || !h.ConfigurationExists() {
		return h.Budgets.Admit(ctx, req)
	}
	ctx, cancel := admission.WithDeadline(ctx)
	defer cancel()
	// While flow control denies, a charge would only reduce what the budgets allow to
	// other requests, until it is refunded.
	var flow *admission.Answer
	if h.FlowControl.LikelyDenies(req) && h.budgetsWouldAllow(ctx, req) {
		if flow = h.askFlowControl(ctx, req); !flow.Response.Allowed {
			return *flow
		}
	}
	answer, charges := h.Budgets.Charge(ctx, req)
	if answer.Response.Allowed {
		if flow == nil {
			flow = h.askFlowControl(ctx, req)
		}
		answer = join(answer, *flow)
	}
	return charges.Finish(ctx, answer)
}

// budgetsWouldAllow decides a dry run of the request.
func (h Handler) budgetsWouldAllow(ctx context.Context, req *admissionv1.AdmissionRequest) bool {
	trial := *req
	trial.DryRun = new(true)
	return h.Budgets.Admit(ctx, &trial).Response.Allowed
}

// askFlowControl returns the answer of flow control. Its denial has the decision of
// the webhook of budgets.
func (h Handler) askFlowControl(ctx context.Context, req *admissionv1.AdmissionRequest) *admission.Answer {
	flow := h.FlowControl.Admit(ctx, req)
	if flow.Decision != deletionflow.DecisionNoFlowControl {
		h.Requests.Count(ctx, deletionflow.Webhook, req, flow)
	}
	if !flow.Response.Allowed {
		flow.Decision = DecisionFlowControl
	}
	return &flow
}

// join returns the answer of flow control to a request that the budgets allow, with
// the warnings of both if it allows the request too.
func join(budgets, flow admission.Answer) admission.Answer {
	if !flow.Response.Allowed {
		return flow
	}
	budgets.Response.Warnings = append(budgets.Response.Warnings, flow.Response.Warnings...)
	return budgets
}

// deletesPod reports whether the request deletes or evicts a pod.
func deletesPod(req *admissionv1.AdmissionRequest) bool {
	if req.Resource.Group != "" || req.Resource.Resource != "pods" {
		return false
	}
	return req.Operation == admissionv1.Delete && req.SubResource == "" ||
		req.Operation == admissionv1.Create && req.SubResource == "eviction"
}
