package serve

import (
	"context"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	mutatinginformer "knative.dev/pkg/client/injection/kube/informers/admissionregistration/v1/mutatingwebhookconfiguration"
	validatinginformer "knative.dev/pkg/client/injection/kube/informers/admissionregistration/v1/validatingwebhookconfiguration"
	"knative.dev/pkg/controller"
	secretinformer "knative.dev/pkg/injection/clients/namespacedkube/informers/core/v1/secret"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"
	"knative.dev/pkg/webhook"

	"github.com/breakwater-dev/breakwater/admission/bookkeeper"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events/recorder"
)

// The names of our MutatingWebhookConfigurations and of our
// ValidatingWebhookConfigurations. RBAC names them too.
const (
	// Configuration is that of the manifests.
	Configuration = "breakwater"
	// Generated is that of the kinds of workloads in config-workloads.
	Generated = "breakwater-workloads"
)

// queueName is part of the name of the Lease, which RBAC names.
const queueName = "bookkeeper"

// books is the bookkeeper, and what wakes it.
type books struct {
	*bookkeeper.Reconciler
	// enqueue is nil until there is a queue.
	enqueue atomic.Pointer[func(types.NamespacedName)]
}

// generatedKeys are those of what follows from config-workloads.
func generatedKeys() []types.NamespacedName {
	return []types.NamespacedName{bookkeeper.MutatingKey(Generated), bookkeeper.ValidatingKey(Generated)}
}

// wake has the generated configurations looked at.
func (b *books) wake() {
	enqueue := b.enqueue.Load()
	if enqueue == nil {
		return // the leader looks at all when it is promoted
	}
	for _, key := range generatedKeys() {
		(*enqueue)(key)
	}
}

// remembered is what the generated configurations were made of.
func (b *books) remembered() string {
	if config, err := b.Mutating.Get(Generated); err == nil {
		return config.Annotations[bookkeeper.KindsAnnotation]
	}
	return ""
}

// newBookkeeper returns the bookkeeper, who does not know the kinds yet, and
// what makes a controller of it.
func newBookkeeper(ctx context.Context) (*books, func(controller.Reconciler) *controller.Impl) {
	options := webhook.GetOptions(ctx)
	secrets, mutating, validating := secretinformer.Get(ctx), mutatinginformer.Get(ctx), validatinginformer.Get(ctx)
	keys := append([]types.NamespacedName{bookkeeper.MutatingKey(Configuration), bookkeeper.ValidatingKey(Configuration)}, generatedKeys()...)
	kube := kubeclient.Get(ctx)
	b := &books{Reconciler: &bookkeeper.Reconciler{
		LeaderAwareFuncs: reconciler.LeaderAwareFuncs{
			PromoteFunc: func(b reconciler.Bucket, enqueue func(reconciler.Bucket, types.NamespacedName)) error {
				for _, key := range keys {
					enqueue(b, key)
				}
				return nil
			},
		},
		Service:    options.ServiceName,
		Secret:     options.SecretName,
		Static:     Configuration,
		Generated:  Generated,
		Client:     kube.AdmissionregistrationV1(),
		Mutating:   mutating.Lister(),
		Validating: validating.Lister(),
		Secrets:    secrets.Lister(),
		Namespaces: kube.CoreV1().Namespaces(),
		Recorder:   recorder.New(ctx, kube, scheme.Scheme, recorder.Breakwater),
	}}
	return b, func(r controller.Reconciler) *controller.Impl {
		impl := controller.NewContext(ctx, r, controller.ControllerOptions{
			WorkQueueName: queueName, Logger: logging.FromContext(ctx).Named(queueName),
		})
		enqueue := impl.EnqueueKey
		b.enqueue.Store(&enqueue)
		follow := func(in cache.SharedIndexInformer, filter func(any) bool, keys ...types.NamespacedName) {
			_, err := in.AddEventHandler(cache.FilteringResourceEventHandler{
				FilterFunc: filter,
				Handler: controller.HandleAll(func(any) {
					for _, key := range keys {
						impl.EnqueueKey(key)
					}
				}),
			})
			if err != nil {
				logging.FromContext(ctx).Panicw("watch", "error", err)
			}
		}
		follow(secrets.Informer(), controller.FilterWithNameAndNamespace(v1alpha1.SystemNamespace, options.SecretName), keys...)
		// The generated ones take after the static ones.
		follow(mutating.Informer(), controller.FilterWithName(Configuration), keys[0], keys[2])
		follow(validating.Informer(), controller.FilterWithName(Configuration), keys[1], keys[3])
		follow(mutating.Informer(), controller.FilterWithName(Generated), keys[2])
		follow(validating.Informer(), controller.FilterWithName(Generated), keys[3])
		return impl
	}
}
