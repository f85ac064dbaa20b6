package namespacelabel

import (
	"context"

	kubeclient "knative.dev/pkg/client/injection/kube/client"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	reconcilernamespace "knative.dev/pkg/client/injection/kube/reconciler/core/v1/namespace"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"

	policyclient "github.com/breakwater-dev/breakwater/client/injection/client"
	budgetinformer "github.com/breakwater-dev/breakwater/client/injection/informers/policy/v1alpha1/podunavailablebudget"
	"github.com/breakwater-dev/breakwater/internal/contextclock"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

// NewController returns the controller of the namespace label.
func NewController(ctx context.Context, _ configmap.Watcher) *controller.Impl {
	budgets := budgetinformer.Get(ctx)
	impl := reconcilernamespace.NewImpl(ctx, &Reconciler{
		Namespaces: kubeclient.Get(ctx).CoreV1().Namespaces(),
		Lister:     budgets.Lister(),
		Client:     policyclient.Get(ctx).PolicyV1alpha1(),
		Clock:      contextclock.Get(ctx),
	}, func(*controller.Impl) controller.Options {
		return controller.Options{SkipStatusUpdates: true} // never write the status of a namespace
	})
	must := wiring.NewMust(ctx, "set up the controller of the namespace label")
	must.Watch(namespaceinformer.Get(ctx).Informer(), controller.HandleAll(impl.Enqueue))
	must.Watch(budgets.Informer(), controller.HandleAll(impl.EnqueueNamespaceOf))
	return impl
}
