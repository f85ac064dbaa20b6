package serve

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
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
)

// Configuration is the name of our MutatingWebhookConfiguration and of our
// ValidatingWebhookConfiguration. RBAC names it too.
const Configuration = "breakwater"

// queueName is part of the name of the Lease, which RBAC names.
const queueName = "bookkeeper"

// newBookkeeper returns the bookkeeper and what makes a controller of it.
func newBookkeeper(ctx context.Context) (*bookkeeper.Reconciler, func(controller.Reconciler) *controller.Impl) {
	options := webhook.GetOptions(ctx)
	secrets, mutating, validating := secretinformer.Get(ctx), mutatinginformer.Get(ctx), validatinginformer.Get(ctx)
	keys := []types.NamespacedName{bookkeeper.MutatingKey(Configuration), bookkeeper.ValidatingKey(Configuration)}
	books := &bookkeeper.Reconciler{
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
		Client:     kubeclient.Get(ctx).AdmissionregistrationV1(),
		Mutating:   mutating.Lister(),
		Validating: validating.Lister(),
		Secrets:    secrets.Lister(),
	}
	return books, func(r controller.Reconciler) *controller.Impl {
		impl := controller.NewContext(ctx, r, controller.ControllerOptions{
			WorkQueueName: queueName, Logger: logging.FromContext(ctx).Named(queueName),
		})
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
		follow(mutating.Informer(), controller.FilterWithName(Configuration), keys[0])
		follow(validating.Informer(), controller.FilterWithName(Configuration), keys[1])
		return impl
	}
}
