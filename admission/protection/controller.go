// Package protection wires the webhooks of part protection. They run in a
// process of their own, because config/protection can be installed without Knative
// and the webhooks of changes, and a restart of one must not affect the other.
package protection

import (
	"context"
	"errors"

	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	validatinginformer "knative.dev/pkg/client/injection/kube/informers/admissionregistration/v1/validatingwebhookconfiguration"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	secretinformer "knative.dev/pkg/injection/clients/namespacedkube/informers/core/v1/secret"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/protection/denialevents"
	"github.com/breakwater-dev/breakwater/admission/server"
	"github.com/breakwater-dev/breakwater/admission/server/webhookconfig"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/eventrecorder"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

// Names of objects in the manifests, in SystemNamespace.
const (
	// ServiceName is the Service that the configuration points to.
	ServiceName = "protection-webhook"
	// SecretName is the Secret with the certificate.
	SecretName = "protection-webhook-certs"
	// Configuration is the ValidatingWebhookConfiguration, which RBAC names too.
	Configuration = "breakwater-protection"
)

// Options describe the process of the webhooks.
func Options() server.Options {
	return server.Options{
		Component: "protection-webhook", Service: ServiceName, Secret: SecretName,
		Webhooks: NewController, Others: []injection.ControllerConstructor{NewDeletionFlowRegistration},
	}
}

// NewController returns the constructor for sharedmain. The context must have
// webhook.Options. It panics on permanent errors.
func NewController(process *server.Process) injection.ControllerConstructor {
	return func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
		must := wiring.NewMust(ctx, "set up the webhooks of part protection")
		w, err := newWatches(ctx)
		must(err)
		mux, err := newMux(ctx, process.NewSender(ctx, cmw), w)
		must(err)
		process.ReadyIf(w.ready)
		impl, err := server.NewController(ctx, process, webhookconfig.New(ctx, Configuration, key), mux)
		must(err)
		must(follow(ctx, impl))
		return impl
	}
}

func newMux(ctx context.Context, sender events.Sender, w watches) (*admission.Mux, error) {
	all, err := newHandlers(ctx, eventrecorder.New(ctx, kubeclient.Get(ctx), eventrecorder.Breakwater), denialevents.New(sender, clock.RealClock{}), w)
	if err != nil {
		return nil, err
	}
	return admission.NewMux(metrics.Meter(), func(webhook string) (admission.Handler, bool) {
		handler, ok := all[webhook]
		return handler, ok
	}), nil
}

// key is the only key of the controller.
var key = webhookconfig.ValidatingKey(Configuration)

func follow(ctx context.Context, impl *controller.Impl) error {
	return errors.Join(
		webhookconfig.EnqueueOnChange(impl, secretinformer.Get(ctx).Informer(), controller.FilterWithNameAndNamespace(v1alpha1.SystemNamespace, SecretName), key),
		webhookconfig.EnqueueOnChange(impl, validatinginformer.Get(ctx).Informer(), controller.FilterWithName(Configuration), key),
	)
}
