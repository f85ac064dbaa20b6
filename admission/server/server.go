package server

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/server/cabundle"
)

const queueName = "cabundle"

// NewController returns the controller that serves the webhooks of mux and runs the
// caBundle reconciler. ready depends on the certificate of the reconciler.
func NewController(ctx context.Context, ready *Readiness, bundles *cabundle.Reconciler, mux *admission.Mux) *controller.Impl {
	ready.Watch(bundles.Secrets, bundles.Secret)
	return controller.NewContext(ctx, Server{Reconciler: bundles, Mux: mux, Done: ctx.Done()}, controller.ControllerOptions{
		WorkQueueName: queueName, Logger: logging.FromContext(ctx).Named(queueName),
	})
}

// Server is an admission controller and the reconciler of its webhook configurations.
// Knative's webhook requires both in one type.
type Server struct {
	*cabundle.Reconciler
	*admission.Mux

	// Done is closed when shutdown begins.
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
