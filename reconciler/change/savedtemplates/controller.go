package savedtemplates

import (
	"context"

	"k8s.io/client-go/tools/cache"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection/clients/dynamicclient"

	changeclient "github.com/breakwater-dev/breakwater/client/injection/client"
	changeworkloadinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changeworkload"
	opsconfiginfoinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/opsconfiginfo"
	reconcilerchangeworkload "github.com/breakwater-dev/breakwater/client/injection/reconciler/change/v1alpha1/changeworkload"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/wiring"
	"github.com/breakwater-dev/breakwater/reconciler/change/liveworkload"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer"
)

// NewController returns the controller of saved templates. It reads workloads
// from the API server when a release ends: a cache of all templates would be
// the largest of the process and rarely used.
func NewController(ctx context.Context, _ configmap.Watcher) *controller.Impl {
	must := wiring.NewMust(ctx, "set up the controller of saved templates")
	store, err := settings.NewStore(opsconfiginfoinformer.Get(ctx), nil)
	must(err)
	changeWorkloads := changeworkloadinformer.Get(ctx)
	impl := reconcilerchangeworkload.NewImpl(ctx, &Reconciler{
		kube:     kubeclient.Get(ctx),
		client:   changeclient.Get(ctx),
		live:     &liveworkload.Reader{Client: dynamicclient.Get(ctx), Namespaces: namespaceinformer.Get(ctx).Lister(), Kind: workloadinformer.Get(ctx).Kind},
		cached:   workloadinformer.Get(ctx).Find,
		settings: store.Get,
		changes:  metrics.NewCounter(metrics.Meter(), "breakwater_saved_template_changes_total"),
	}, func(*controller.Impl) controller.Options {
		// Other writers share the status: see statuspatch.
		return controller.Options{SkipStatusUpdates: true}
	})
	must.Watch(changeWorkloads.Informer(), cache.ResourceEventHandlerFuncs{
		AddFunc: impl.Enqueue,
		UpdateFunc: func(before, after any) {
			if matters(before, after) {
				impl.Enqueue(after)
			}
		},
	})
	return impl
}
