package rollback

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	podinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/pod"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection/clients/dynamicclient"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	changeclient "github.com/breakwater-dev/breakwater/client/injection/client"
	changeworkloadinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changeworkload"
	opsconfiginfoinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/opsconfiginfo"
	reconcilerchangeworkload "github.com/breakwater-dev/breakwater/client/injection/reconciler/change/v1alpha1/changeworkload"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/wiring"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/liveworkload"
	"github.com/breakwater-dev/breakwater/reconciler/change/nodestate"
	"github.com/breakwater-dev/breakwater/reconciler/change/releasefinder"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer"
)

// maxReported is the size of the LRU cache of impossible rollbacks that were
// already reported.
const maxReported = 4096

// NewController returns the controller of rollbacks. It adds an index to
// informers, which must not have been started.
func NewController(ctx context.Context, _ configmap.Watcher) *controller.Impl {
	must := wiring.NewMust(ctx, "set up the controller of rollbacks")
	r, err := newReconciler(ctx)
	must(err)
	impl := reconcilerchangeworkload.NewImpl(ctx, r, func(*controller.Impl) controller.Options {
		// Other writers share the status: see statuspatch.
		return controller.Options{SkipStatusUpdates: true}
	})
	store, err := settings.NewStore(opsconfiginfoinformer.Get(ctx), func() {
		impl.GlobalResync(changeworkloadinformer.Get(ctx).Informer())
	})
	must(err)
	r.settings = store.Get
	watch(ctx, must, impl)
	return impl
}

// newReconciler returns a Reconciler without settings.
func newReconciler(ctx context.Context) (*Reconciler, error) {
	finder, err := releasefinder.New(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := nodestate.Get(ctx)
	if err != nil {
		return nil, err
	}
	return &Reconciler{
		nodes:           nodes,
		kube:            kubeclient.Get(ctx),
		dynamic:         dynamicclient.Get(ctx),
		client:          changeclient.Get(ctx),
		live:            &liveworkload.Reader{Client: dynamicclient.Get(ctx), Namespaces: namespaceinformer.Get(ctx).Lister(), Kind: workloadinformer.Get(ctx).Kind},
		workloads:       workloadinformer.Get(ctx),
		finder:          finder,
		pods:            podinformer.Get(ctx).Informer().GetIndexer(),
		changeWorkloads: changeworkloadinformer.Get(ctx).Lister(),
		rollbacks:       metrics.NewCounter(metrics.Meter(), "breakwater_rollbacks_total"),
		reported:        lru.New(maxReported),
		clock:           clock.RealClock{},
	}, nil
}

// watch enqueues releases that may have to be rolled back.
func watch(ctx context.Context, must wiring.Must, impl *controller.Impl) {
	changeWorkloads := changeworkloadinformer.Get(ctx).Informer()
	must.Watch(changeWorkloads, controller.HandleAll(impl.Enqueue))
	// A workload has a request or a rollback, or its rollout made progress.
	must(workloadinformer.Get(ctx).Handle(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { enqueue(impl, asWorkload(obj)) },
		UpdateFunc: func(before, after any) {
			if w := asWorkload(after); differs(asWorkload(before), w) {
				enqueue(impl, w)
			}
		},
	}))
	// A namespace was opted in.
	must.Watch(namespaceinformer.Get(ctx).Informer(), controller.HandleAll(func(obj any) {
		ns, ok := obj.(*corev1.Namespace)
		if !ok || !v1alpha1.OptedIn(ns) {
			return
		}
		impl.FilteredGlobalResync(func(obj any) bool {
			c, ok := obj.(*v1alpha1.ChangeWorkload)
			return ok && c.Namespace == ns.Name
		}, changeWorkloads)
	}))
}

// asWorkload returns nil for another type.
func asWorkload(obj any) *workload.Workload {
	w, _ := wiring.Object[*workload.Workload](obj)
	return w
}

// differs ignores updates of the status, which are frequent during a rollout, except
// the one that completes it.
func differs(before, after *workload.Workload) bool {
	return before == nil || after == nil || before.ResourceVersion == after.ResourceVersion ||
		before.Generation != after.Generation || before.Complete != after.Complete ||
		before.Annotations[v1alpha1.RollbackRequestAnnotation] != after.Annotations[v1alpha1.RollbackRequestAnnotation] ||
		before.Annotations[v1alpha1.AttemptAnnotation] != after.Annotations[v1alpha1.AttemptAnnotation]
}

// enqueue enqueues the release of a workload, and the release that was rolled back.
func enqueue(impl *controller.Impl, w *workload.Workload) {
	if w == nil {
		return
	}
	if release, known := v1alpha1.ReleaseOf(w.Annotations); known {
		impl.EnqueueKey(types.NamespacedName{Namespace: w.Namespace, Name: v1alpha1.ChangeWorkloadName(w.Name, release.Version)})
	}
	if rollback := v1alpha1.RollbackOf(w.Annotations); rollback != nil {
		impl.EnqueueKey(types.NamespacedName{Namespace: w.Namespace, Name: v1alpha1.ChangeWorkloadName(w.Name, rollback.FromVersion)})
	}
}
