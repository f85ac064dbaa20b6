package process

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/bookkeeper"
)

// Server is the admission controller and the reconciler of its configurations
// in one, as sharedmain wants it.
type Server struct {
	*bookkeeper.Reconciler
	*admission.Mux

	// Ending is closed when the process is to end.
	Ending <-chan struct{}
}

// Admit implements webhook.AdmissionController.
func (s Server) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	select {
	case <-s.Ending:
		SendAway(ctx)
	default:
	}
	return s.Mux.Admit(ctx, req)
}
