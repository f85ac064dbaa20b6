package webhookconfig

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	validatinginformer "knative.dev/pkg/client/injection/kube/informers/admissionregistration/v1/validatingwebhookconfiguration"
	secretinformer "knative.dev/pkg/injection/clients/namespacedkube/informers/core/v1/secret"
	"knative.dev/pkg/reconciler"
	"knative.dev/pkg/webhook"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

// New returns the Reconciler of the configurations that the manifests name static; a new leader enqueues the keys.
// The context must have webhook.Options. Mutating is not set, because not every webhook may read MutatingWebhookConfigurations.
func New(ctx context.Context, static string, keys ...types.NamespacedName) *Reconciler {
	options, kube := webhook.GetOptions(ctx), kubeclient.Get(ctx)
	return &Reconciler{
		LeaderAwareFuncs: reconciler.LeaderAwareFuncs{PromoteFunc: wiring.PromoteKeys(keys...)},
		Service:          options.ServiceName,
		Secret:           options.SecretName,
		Static:           static,
		Client:           kube.AdmissionregistrationV1(),
		Validating:       validatinginformer.Get(ctx).Lister(),
		Secrets:          secretinformer.Get(ctx).Lister(),
		LiveSecrets:      kube.CoreV1().Secrets(v1alpha1.SystemNamespace),
		Clock:            clock.RealClock{},
	}
}
