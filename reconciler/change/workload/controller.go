package workload

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	revisioninformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/controllerrevision"
	replicasetinformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/replicaset"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection/clients/dynamicclient"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	changeclient "github.com/breakwater-dev/breakwater/client/injection/client"
	changeworkloadinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changeworkload"
	opsconfiginfoinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/opsconfiginfo"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/reconciler/change/namespaceoptin"
	"github.com/breakwater-dev/breakwater/reconciler/change/releasefinder"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer"
)

const (
	// fieldManager owns what this binary writes.
	fieldManager = "controller"
	queueName    = "workload"
	// workers is enough to opt in a namespace with hundreds of workloads within
	// seconds, at one or two API requests each.
	workers = 4
)

// NewController returns the controller of workloads of all kinds. It makes the
// process's workload informer follow config-workloads.
func NewController(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
	logger := logging.FromContext(ctx)
	must := func(err error) {
		if err != nil {
			logger.Panicw("create the controller of workloads", "error", err)
		}
	}
	namespaces := namespaceinformer.Get(ctx)
	changeWorkloads := changeworkloadinformer.Get(ctx)
	workloads := workloadinformer.Get(ctx)
	revisions, err := releasefinder.New(ctx)
	must(err)
	store, err := settings.NewStore(opsconfiginfoinformer.Get(ctx), nil)
	must(err)
	guarded := namespaceoptin.Filter(namespaces.Lister())
	r := &Reconciler{
		dynamic:         dynamicclient.Get(ctx),
		client:          changeclient.Get(ctx),
		workloads:       workloads,
		revisions:       revisions,
		namespaces:      namespaces.Lister(),
		changeWorkloads: changeWorkloads.Lister(),
		settings:        store.Get,
		cluster:         watchCluster(cmw, namespaces.Lister()),
		touches:         resend.New(resend.Clock(ctx)),
		touched:         metrics.NewCounter(metrics.Meter(), "breakwater_workload_noop_updates_total"),
		clock:           resend.Clock(ctx),
	}
	r.PromoteFunc = func(b reconciler.Bucket, enqueue func(reconciler.Bucket, types.NamespacedName)) error {
		for _, w := range workloads.All() {
			if guarded(w) {
				enqueue(b, keyOf(w.Kind, w.Namespace, w.Name))
			}
		}
		return nil
	}
	impl := controller.NewContext(ctx, r, controller.ControllerOptions{
		WorkQueueName: queueName, Logger: logger.Named(queueName), Concurrency: workers,
	})

	enqueue := func(obj any) {
		if w := workloadinformer.Deleted(obj); w != nil {
			impl.EnqueueKey(keyOf(w.Kind, w.Namespace, w.Name))
		}
	}
	enqueueController := func(obj any) {
		if key, ok := keyOfController(workloads, obj); ok {
			impl.EnqueueKey(key)
		}
	}
	watch := func(in cache.SharedInformer, h cache.ResourceEventHandler) {
		_, err := in.AddEventHandler(h)
		must(err)
	}
	must(workloads.Handle(cache.FilteringResourceEventHandler{
		FilterFunc: guarded,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    enqueue,
			UpdateFunc: onChange(differs, enqueue),
		},
	}))
	// Opting a namespace in affects every workload in it.
	watch(namespaces.Informer(), namespaceoptin.Handler(func(namespace string) {
		for _, w := range workloads.All() {
			if w.Namespace == namespace {
				enqueue(w)
			}
		}
	}))
	// A Success or a closed order lets older ChangeWorkloads be deleted; a
	// deletion frees the name for a new attempt.
	watch(changeWorkloads.Informer(), cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueueController,
		UpdateFunc: onChange(endDiffers, enqueueController),
		DeleteFunc: enqueueController,
	})
	// A revision may carry the version of another one: see Input.Carriers.
	watch(replicasetinformer.Get(ctx).Informer(), cache.FilteringResourceEventHandler{
		FilterFunc: guarded,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    enqueueController,
			UpdateFunc: onChange(versionDiffers, enqueueController),
		},
	})
	watch(revisioninformer.Get(ctx).Informer(), cache.FilteringResourceEventHandler{
		FilterFunc: guarded,
		Handler:    cache.ResourceEventHandlerFuncs{AddFunc: enqueueController},
	})
	workloads.Follow(cmw)
	return impl
}
