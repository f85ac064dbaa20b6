// Package admission holds what all webhooks share: Mux routes a request to a
// Handler and counts its Answer, Change reads a workload's update, Mutation makes a
// JSON patch. The handlers are in
// admission/change, admission/protection and admission/permission.
//
// A handler is idempotent: the API server may send one request several times. Some
// handlers have side effects outside dry runs: release checks store the server's
// verdict, budgets store charges, flow controls store counts, the first budget of a namespace
// labels it, and denials are reported as events.
package admission

import (
	"context"
	"errors"
	"net/http"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/internal/groupcommit"
)

// Handler answers the requests of one webhook.
type Handler interface {
	Admit(context.Context, *admissionv1.AdmissionRequest) Answer
}

// Answer is an admission response and the decision that metrics count.
type Answer struct {
	// Decision is a metric label value, one of the handler's constants.
	Decision string
	// Response is sent to the API server; never nil.
	Response *admissionv1.AdmissionResponse
}

// Decisions that several handlers share.
const (
	// DecisionAdmitted means that the request is allowed: no rule applies to it, or it
	// passed a check whose handler has no decision of its own for that.
	DecisionAdmitted = "Admitted"
	// DecisionError means that the request could not be decided.
	DecisionError = "Error"
	// DecisionDeniedTimeout means that the request was denied, because there was no decision
	// in time.
	DecisionDeniedTimeout = "DeniedTimeout"
	// DecisionDeniedQueueFull means that the request was denied at once, because too many
	// requests wait for a decision on the same object.
	DecisionDeniedQueueFull = "DeniedQueueFull"
)

// DecisionOf returns the decision for a request that is denied, because an error prevented
// its decision.
func DecisionOf(err error) string {
	switch {
	case errors.Is(err, groupcommit.ErrDeadline):
		return DecisionDeniedTimeout
	case errors.Is(err, groupcommit.ErrQueueFull):
		return DecisionDeniedQueueFull
	default:
		return DecisionError
	}
}

// Allow admits the request unchanged.
func Allow(decision string) Answer {
	return Answer{Decision: decision, Response: &admissionv1.AdmissionResponse{Allowed: true}}
}

// AllowWith admits the request with a JSON patch, which may be empty.
func AllowWith(decision string, patch []byte) Answer {
	a := Allow(decision)
	if len(patch) > 0 {
		a.Response.Patch = patch
		a.Response.PatchType = new(admissionv1.PatchTypeJSONPatch)
	}
	return a
}

// Deny denies the request with the status. The API server returns the status to its
// client and prefixes the message: `admission webhook "…" denied the request: `.
func Deny(decision string, status metav1.Status) Answer {
	status.Status = metav1.StatusFailure
	return Answer{Decision: decision, Response: &admissionv1.AdmissionResponse{Result: &status}}
}

// Fail denies a request that could not be decided.
func Fail(err error) Answer {
	return Deny(DecisionError, metav1.Status{
		Code:    http.StatusInternalServerError,
		Reason:  metav1.StatusReasonInternalError,
		Message: err.Error(),
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: CauseUndecided, Message: err.Error()}}},
	})
}

// CauseUndecided is the cause of a denial without a decision, for example because
// the API server is unreachable. Another replica may be able to decide.
const CauseUndecided metav1.CauseType = "Undecided"

// Undecided reports whether a response denies a request without a decision.
func Undecided(r *admissionv1.AdmissionResponse) bool {
	return !r.Allowed && r.Result != nil && r.Result.Details != nil &&
		slices.ContainsFunc(r.Result.Details.Causes, func(c metav1.StatusCause) bool { return c.Type == CauseUndecided })
}
