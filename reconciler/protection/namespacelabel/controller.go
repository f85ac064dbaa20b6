package namespacelabel

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	reconcilernamespace "knative.dev/pkg/client/injection/kube/reconciler/core/v1/namespace"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/kmeta"
	"knative.dev/pkg/logging"

	policyclient "github.com/breakwater-dev/breakwater/client/injection/client"
	budgetinformer "github.com/breakwater-dev/breakwater/client/injection/informers/policy/v1alpha1/podunavailablebudget"
	"github.com/breakwater-dev/breakwater/internal/resend"
)

// agentName is the source of Kubernetes Events.
const agentName = "breakwater"

// NewController returns the controller of the namespace label.
func NewController(ctx context.Context, _ configmap.Watcher) *controller.Impl {
	budgets := budgetinformer.Get(ctx)
	impl := reconcilernamespace.NewImpl(ctx, &Reconciler{
		Namespaces: kubeclient.Get(ctx).CoreV1().Namespaces(),
		Lister:     budgets.Lister(),
		Client:     policyclient.Get(ctx).PolicyV1alpha1(),
		Clock:      resend.Clock(ctx),
	}, func(*controller.Impl) controller.Options {
		return controller.Options{AgentName: agentName, SkipStatusUpdates: true} // never write the status of a namespace
	})
	must := func(err error) {
		if err != nil {
			logging.FromContext(ctx).Panicw("wire the controller of the namespace label", "error", err)
		}
	}
	_, err := namespaceinformer.Get(ctx).Informer().AddEventHandler(controller.HandleAll(impl.Enqueue))
	must(err)
	_, err = budgets.Informer().AddEventHandler(controller.HandleAll(func(obj any) {
		if b, err := kmeta.DeletionHandlingAccessor(obj); err == nil {
			impl.EnqueueKey(types.NamespacedName{Name: b.GetNamespace()})
		}
	}))
	must(err)
	return impl
}
