package change

import (
	"context"
	"errors"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	mutatinginformer "knative.dev/pkg/client/injection/kube/informers/admissionregistration/v1/mutatingwebhookconfiguration"
	validatinginformer "knative.dev/pkg/client/injection/kube/informers/admissionregistration/v1/validatingwebhookconfiguration"
	"knative.dev/pkg/controller"
	secretinformer "knative.dev/pkg/injection/clients/namespacedkube/informers/core/v1/secret"

	"github.com/breakwater-dev/breakwater/admission/server/webhookconfig"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/eventrecorder"
)

// Names of our MutatingWebhookConfigurations and ValidatingWebhookConfigurations.
// The RBAC manifests contain them too.
const (
	// Configuration is in the manifests.
	Configuration = "breakwater"
	// Generated is generated for the kinds of config-workloads.
	Generated = "breakwater-workloads"
)

// webhookConfigs is the reconciler of the webhook configurations with its work queue.
type webhookConfigs struct {
	*webhookconfig.Reconciler
	// queue is nil until watch is called.
	queue atomic.Pointer[controller.Impl]
}

// staticKeys returns the keys of the configurations in the manifests.
func staticKeys() []types.NamespacedName {
	return []types.NamespacedName{webhookconfig.MutatingKey(Configuration), webhookconfig.ValidatingKey(Configuration)}
}

// generatedKeys returns the keys of the generated configurations.
func generatedKeys() []types.NamespacedName {
	return []types.NamespacedName{webhookconfig.MutatingKey(Generated), webhookconfig.ValidatingKey(Generated)}
}

// enqueueGenerated enqueues the generated configurations.
func (c *webhookConfigs) enqueueGenerated() {
	impl := c.queue.Load()
	if impl == nil {
		return // a new leader enqueues all keys
	}
	for _, key := range generatedKeys() {
		impl.EnqueueKey(key)
	}
}

// recordedKinds returns the list of kinds that the generated configurations were
// built from.
func (c *webhookConfigs) recordedKinds() string {
	if config, err := c.Mutating.Get(Generated); err == nil {
		return config.Annotations[webhookconfig.KindsAnnotation]
	}
	return ""
}

// newWebhookConfigReconciler returns the reconciler of the webhook configurations without Kinds.
func newWebhookConfigReconciler(ctx context.Context) *webhookConfigs {
	kube := kubeclient.Get(ctx)
	configs := webhookconfig.New(ctx, Configuration, append(staticKeys(), generatedKeys()...)...)
	configs.Generated = Generated
	configs.RecordInstallation = true
	configs.Mutating = mutatinginformer.Get(ctx).Lister()
	configs.Namespaces = kube.CoreV1().Namespaces()
	configs.Recorder = eventrecorder.New(ctx, kube, eventrecorder.Breakwater)
	return &webhookConfigs{Reconciler: configs}
}

// watch enqueues keys when the certificate or a configuration changes.
func (c *webhookConfigs) watch(ctx context.Context, impl *controller.Impl) error {
	c.queue.Store(impl)
	static, generated := staticKeys(), generatedKeys()
	mutating, validating := mutatinginformer.Get(ctx).Informer(), validatinginformer.Get(ctx).Informer()
	return errors.Join(
		webhookconfig.EnqueueOnChange(impl, secretinformer.Get(ctx).Informer(),
			controller.FilterWithNameAndNamespace(v1alpha1.SystemNamespace, c.Secret), append(static, generated...)...),
		// The generated configurations are derived from the static ones.
		webhookconfig.EnqueueOnChange(impl, mutating, controller.FilterWithName(Configuration), static[0], generated[0]),
		webhookconfig.EnqueueOnChange(impl, validating, controller.FilterWithName(Configuration), static[1], generated[1]),
		webhookconfig.EnqueueOnChange(impl, mutating, controller.FilterWithName(Generated), generated[0]),
		webhookconfig.EnqueueOnChange(impl, validating, controller.FilterWithName(Generated), generated[1]),
	)
}
