package serve

import (
	"context"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/bookkeeper"
)

// server is the admission controller and the reconciler of its configurations
// in one, as sharedmain wants it.
type server struct {
	*bookkeeper.Reconciler
	*admission.Mux

	// ending is closed when the process is to end.
	ending <-chan struct{}
}

// Admit implements webhook.AdmissionController.
func (s server) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	select {
	case <-s.ending:
		sendAway(ctx)
	default:
	}
	return s.Mux.Admit(ctx, req)
}

// sendAway makes the API server's connections end with their next answer. It
// keeps them open for as long as they are of use, so without this it would go
// on asking a process that is about to end, until that is killed in the middle
// of an answer.
func sendAway(ctx context.Context) {
	r := apis.GetHTTPRequest(ctx)
	if r == nil {
		return
	}
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok {
		s.SetKeepAlivesEnabled(false)
	}
}
