package server

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	secretinformer "knative.dev/pkg/injection/clients/namespacedkube/informers/core/v1/secret"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/webhook"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/server/webhookconfig"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

// queueName is the name of the queue in logs and metrics.
const queueName = "cabundle"

// ReadyIf adds a condition that has to be met before the process becomes ready.
// Afterwards it does not count: what it waits for may be lost, and the process must
// still answer.
func (p *Process) ReadyIf(condition func() bool) { p.readiness.condition = condition }

// NewController returns the controller that runs the reconciler of the webhook
// configurations, and makes the process serve the webhooks of mux. The readiness of the
// process depends on the certificate of the reconciler.
func NewController(ctx context.Context, p *Process, configs *webhookconfig.Reconciler, mux *admission.Mux) (*controller.Impl, error) {
	handler, err := webhook.New(ctx, []any{mux})
	if err != nil {
		return nil, fmt.Errorf("create the webhook: %w", err)
	}
	handler.InformersHaveSynced() // the process serves only then
	p.handler = mux.Known(logging.FromContext(ctx), handler)
	p.callers = &callers{
		secret: func() (*corev1.Secret, error) {
			return configs.Secrets.Secrets(v1alpha1.SystemNamespace).Get(configs.Secret)
		},
		configured: configs.HasPath, clock: clock.RealClock{},
		rejected: metrics.NewCounter(metrics.Meter(), "breakwater_admission_unauthenticated_requests_total"),
		reviews:  newReviews(),
		unread:   metrics.NewCounter(metrics.Meter(), "breakwater_admission_unread_reviews_total"),
	}
	if err := p.callers.watch(secretinformer.Get(ctx).Informer()); err != nil {
		return nil, err
	}
	p.certificate = &certificate{secrets: configs.Secrets, name: configs.Secret}
	p.readiness.watch(p.certificate)
	return controller.NewContext(ctx, configs, controller.ControllerOptions{
		WorkQueueName: queueName, Logger: logging.FromContext(ctx).Named(queueName), RateLimiter: wiring.RetryWithin(webhookconfig.RetryWithin),
	}), nil
}
