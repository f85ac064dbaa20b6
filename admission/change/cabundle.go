package change

import (
	"context"
	"errors"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	mutatinginformer "knative.dev/pkg/client/injection/kube/informers/admissionregistration/v1/mutatingwebhookconfiguration"
	validatinginformer "knative.dev/pkg/client/injection/kube/informers/admissionregistration/v1/validatingwebhookconfiguration"
	"knative.dev/pkg/controller"
	secretinformer "knative.dev/pkg/injection/clients/namespacedkube/informers/core/v1/secret"
	"knative.dev/pkg/reconciler"
	"knative.dev/pkg/webhook"

	"github.com/breakwater-dev/breakwater/admission/server/cabundle"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/eventrecorder"
)

// The names of our MutatingWebhookConfigurations and of our
// ValidatingWebhookConfigurations. RBAC names them too.
const (
	// Configuration is that of the manifests.
	Configuration = "breakwater"
	// Generated is that of the kinds of workloads in config-workloads.
	Generated = "breakwater-workloads"
)

// books is the bookkeeper, and what wakes it.
type books struct {
	*cabundle.Reconciler
	// queue is nil until there is one.
	queue atomic.Pointer[controller.Impl]
}

// staticKeys are those of the manifests.
func staticKeys() []types.NamespacedName {
	return []types.NamespacedName{cabundle.MutatingKey(Configuration), cabundle.ValidatingKey(Configuration)}
}

// generatedKeys are those of what follows from config-workloads.
func generatedKeys() []types.NamespacedName {
	return []types.NamespacedName{cabundle.MutatingKey(Generated), cabundle.ValidatingKey(Generated)}
}

// wake has the generated configurations looked at.
func (b *books) wake() {
	impl := b.queue.Load()
	if impl == nil {
		return // the leader looks at all when it is promoted
	}
	for _, key := range generatedKeys() {
		impl.EnqueueKey(key)
	}
}

// remembered is what the generated configurations were made of.
func (b *books) remembered() string {
	if config, err := b.Mutating.Get(Generated); err == nil {
		return config.Annotations[cabundle.KindsAnnotation]
	}
	return ""
}

// newBookkeeper returns the bookkeeper, who does not know the kinds yet.
func newBookkeeper(ctx context.Context) *books {
	options, kube := webhook.GetOptions(ctx), kubeclient.Get(ctx)
	return &books{Reconciler: &cabundle.Reconciler{
		LeaderAwareFuncs: reconciler.LeaderAwareFuncs{PromoteFunc: cabundle.PromoteKeys(append(staticKeys(), generatedKeys()...)...)},
		Service:          options.ServiceName,
		Secret:           options.SecretName,
		Static:           Configuration,
		Generated:        Generated,
		Client:           kube.AdmissionregistrationV1(),
		Mutating:         mutatinginformer.Get(ctx).Lister(),
		Validating:       validatinginformer.Get(ctx).Lister(),
		Secrets:          secretinformer.Get(ctx).Lister(),
		Namespaces:       kube.CoreV1().Namespaces(),
		Recorder:         eventrecorder.New(ctx, kube, scheme.Scheme, eventrecorder.Breakwater),
	}}
}

// follow has the queue wake the bookkeeper.
func (b *books) follow(ctx context.Context, impl *controller.Impl) error {
	b.queue.Store(impl)
	static, generated := staticKeys(), generatedKeys()
	mutating, validating := mutatinginformer.Get(ctx).Informer(), validatinginformer.Get(ctx).Informer()
	return errors.Join(
		cabundle.EnqueueOnChange(impl, secretinformer.Get(ctx).Informer(),
			controller.FilterWithNameAndNamespace(v1alpha1.SystemNamespace, b.Secret), append(static, generated...)...),
		// The generated ones take after the static ones.
		cabundle.EnqueueOnChange(impl, mutating, controller.FilterWithName(Configuration), static[0], generated[0]),
		cabundle.EnqueueOnChange(impl, validating, controller.FilterWithName(Configuration), static[1], generated[1]),
		cabundle.EnqueueOnChange(impl, mutating, controller.FilterWithName(Generated), generated[0]),
		cabundle.EnqueueOnChange(impl, validating, controller.FilterWithName(Generated), generated[1]),
	)
}
