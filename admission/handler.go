// Package admission is what the webhooks share: how a request is handed to the
// decision that it is for, how it is read, answered, patched and counted. The
// decisions themselves are packages of their own: version (mdeployment.kb.io),
// suspend (vdeployment.kb.io), releasecheck (vrelease.kb.io), opsconfig.
//
// A handler answers from what the request and caches say and writes nothing to
// the cluster. releasecheck is the exception: it asks the AlterShield server,
// and keeps the answer. An answer is the same however often one request is
// asked.
package admission

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Handler answers the requests of one webhook.
type Handler interface {
	Admit(context.Context, *admissionv1.AdmissionRequest) Answer
}

// Answer is a response and the word under which it is counted.
type Answer struct {
	// Decision is a metric label: one of a handler's few constants.
	Decision string
	// Response is what the API server gets; never nil.
	Response *admissionv1.AdmissionResponse
}

// Decisions that more than one handler makes.
const (
	// DecisionAdmitted: nothing speaks against the request.
	DecisionAdmitted = "Admitted"
	// DecisionError: the request could not be decided.
	DecisionError = "Error"
)

// Allow admits the request as it is.
func Allow(decision string) Answer {
	return Answer{Decision: decision, Response: &admissionv1.AdmissionResponse{Allowed: true}}
}

// AllowWith admits the request with a JSON patch; an empty one counts as none.
func AllowWith(decision string, patch []byte) Answer {
	a := Allow(decision)
	if len(patch) > 0 {
		a.Response.Patch = patch
		a.Response.PatchType = ptr.To(admissionv1.PatchTypeJSONPatch)
	}
	return a
}

// Deny refuses the request with the status, which the API server passes on: it
// only puts `admission webhook "…" denied the request: ` before the message.
func Deny(decision string, status metav1.Status) Answer {
	status.Status = metav1.StatusFailure
	return Answer{Decision: decision, Response: &admissionv1.AdmissionResponse{Result: &status}}
}

// Fail refuses a request that could not be decided.
func Fail(err error) Answer {
	return Deny(DecisionError, metav1.Status{
		Code:    http.StatusInternalServerError,
		Reason:  metav1.StatusReasonInternalError,
		Message: err.Error(),
	})
}
