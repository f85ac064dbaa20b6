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
	"github.com/breakwater-dev/breakwater/internal/contextclock"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/wiring"
	"github.com/breakwater-dev/breakwater/internal/workload"
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
	must := wiring.NewMust(ctx, "set up the controller of workloads")
	r, err := newReconciler(ctx, cmw)
	must(err)
	impl := controller.NewContext(ctx, r, controller.ControllerOptions{
		WorkQueueName: queueName, Logger: logging.FromContext(ctx).Named(queueName), Concurrency: workers,
	})
	watch(ctx, must, impl)
	workloadinformer.Get(ctx).Follow(cmw)
	return impl
}

func newReconciler(ctx context.Context, cmw configmap.Watcher) (*Reconciler, error) {
	revisions, err := releasefinder.New(ctx)
	if err != nil {
		return nil, err
	}
	store, err := settings.NewStore(opsconfiginfoinformer.Get(ctx), nil)
	if err != nil {
		return nil, err
	}
	workloads, namespaces := workloadinformer.Get(ctx), namespaceinformer.Get(ctx).Lister()
	r := &Reconciler{
		dynamic:         dynamicclient.Get(ctx),
		client:          changeclient.Get(ctx),
		workloads:       workloads,
		revisions:       revisions,
		namespaces:      namespaces,
		changeWorkloads: changeworkloadinformer.Get(ctx).Lister(),
		settings:        store.Get,
		cluster:         watchCluster(cmw, namespaces),
		recorder:        controller.GetEventRecorder(ctx),
		readmissions:    resend.New(contextclock.Get(ctx)),
		readmitted:      metrics.NewCounter(metrics.Meter(), "breakwater_workload_readmissions_total"),
		clock:           contextclock.Get(ctx),
	}
	r.PromoteFunc = func(b reconciler.Bucket, enqueue func(reconciler.Bucket, types.NamespacedName)) error {
		r.decidingSince.Promote(b)
		optedIn := namespaceoptin.Filter(namespaces)
		for _, w := range workloads.All() {
			if optedIn(w) {
				enqueue(b, workloadinformer.QueueKey(w.Kind, w.Namespace, w.Name))
			}
		}
		return nil
	}
	r.DemoteFunc = r.decidingSince.Demote
	return r, nil
}

// watch enqueues a workload when it changes, or an object that belongs to it.
func watch(ctx context.Context, must wiring.Must, impl *controller.Impl) {
	workloads, namespaces := workloadinformer.Get(ctx), namespaceinformer.Get(ctx)
	optedIn := namespaceoptin.Filter(namespaces.Lister())
	enqueue := func(obj any) {
		w, ok := wiring.Object[*workload.Workload](obj)
		if !ok {
			return
		}
		if of, isPart := workloads.ServiceOf(w); isPart {
			impl.EnqueueKey(workloadinformer.QueueKey(workload.KnativeService, w.Namespace, of.Name)) // see Input.RevisionCount
			return
		}
		impl.EnqueueKey(workloadinformer.QueueKey(w.Kind, w.Namespace, w.Name))
	}
	enqueueController := func(obj any) {
		if key, ok := keyOfController(workloads, obj); ok {
			impl.EnqueueKey(key)
		}
	}
	must(workloads.Handle(cache.FilteringResourceEventHandler{
		FilterFunc: optedIn,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    enqueue,
			UpdateFunc: onChange(differs, enqueue),
		},
	}))
	// Opting a namespace in or out affects every workload in it.
	must.Watch(namespaces.Informer(), namespaceoptin.ChangeHandler(func(namespace string) {
		for _, w := range workloads.All() {
			if w.Namespace == namespace {
				enqueue(w)
			}
		}
	}))
	// A Success or a closed order lets older ChangeWorkloads be deleted; a
	// deletion frees the name for a new attempt.
	must.Watch(changeworkloadinformer.Get(ctx).Informer(), cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueueController,
		UpdateFunc: onChange(endDiffers, enqueueController),
		DeleteFunc: enqueueController,
	})
	// A revision may have the version of another one: see Input.RevisionCount.
	must.Watch(replicasetinformer.Get(ctx).Informer(), cache.FilteringResourceEventHandler{
		FilterFunc: optedIn,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    enqueueController,
			UpdateFunc: onChange(versionDiffers, enqueueController),
		},
	})
	must.Watch(revisioninformer.Get(ctx).Informer(), cache.FilteringResourceEventHandler{
		FilterFunc: optedIn,
		Handler:    cache.ResourceEventHandlerFuncs{AddFunc: enqueueController},
	})
}
