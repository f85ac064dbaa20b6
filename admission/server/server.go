package server

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/server/cabundle"
)

const queueName = "bookkeeper"

// NewController returns the controller of what the process serves and keeps books
// of. ready follows its certificate.
func NewController(ctx context.Context, ready *Readiness, books *cabundle.Reconciler, mux *admission.Mux) *controller.Impl {
	ready.Watch(books.Secrets, books.Secret)
	return controller.NewContext(ctx, Server{Reconciler: books, Mux: mux, Done: ctx.Done()}, controller.ControllerOptions{
		WorkQueueName: queueName, Logger: logging.FromContext(ctx).Named(queueName),
	})
}

// Server is the admission controller and the reconciler of its configurations
// in one, as sharedmain wants it.
type Server struct {
	*cabundle.Reconciler
	*admission.Mux

	// Done is closed when the process is to end.
	Done <-chan struct{}
}

// Admit implements webhook.AdmissionController.
func (s Server) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	select {
	case <-s.Done:
		DisableKeepAlives(ctx)
	default:
	}
	return s.Mux.Admit(ctx, req)
}
