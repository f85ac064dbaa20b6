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
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	changeclient "github.com/breakwater-dev/breakwater/client/injection/client"
	changeworkloadinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changeworkload"
	opsconfiginfoinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/opsconfiginfo"
	reconcilerchangeworkload "github.com/breakwater-dev/breakwater/client/injection/reconciler/change/v1alpha1/changeworkload"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/liveworkload"
	"github.com/breakwater-dev/breakwater/reconciler/change/releasefinder"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer"
)

const (
	// agentName is the source of our Kubernetes Events.
	agentName = "breakwater"
	// remembered is how many releases that cannot go back are not told of again.
	remembered = 4096
)

// NewController returns the controller of rollbacks. It adds an index to
// informers, which must not have been started.
func NewController(ctx context.Context, _ configmap.Watcher, sender events.Sender) *controller.Impl {
	logger := logging.FromContext(ctx)
	must := func(err error) {
		if err != nil {
			logger.Panicw("wire the controller of rollbacks", "error", err)
		}
	}
	finder, err := releasefinder.New(ctx)
	must(err)
	changeWorkloads, namespaces := changeworkloadinformer.Get(ctx), namespaceinformer.Get(ctx)
	workloads := workloadinformer.Get(ctx)
	r := &Reconciler{
		kube:            kubeclient.Get(ctx),
		dynamic:         dynamicclient.Get(ctx),
		client:          changeclient.Get(ctx),
		live:            &liveworkload.Reader{Client: dynamicclient.Get(ctx), Namespaces: namespaces.Lister()},
		workloads:       workloads,
		finder:          finder,
		pods:            podinformer.Get(ctx).Informer().GetIndexer(),
		changeWorkloads: changeWorkloads.Lister(),
		sender:          sender,
		rollbacks:       metrics.NewCounter(metrics.Meter(), "breakwater_rollbacks_total"),
		reported:        lru.New(remembered),
		clock:           clock.RealClock{},
	}
	impl := reconcilerchangeworkload.NewImpl(ctx, r, func(*controller.Impl) controller.Options {
		// Facts of others stand in the same status: see statuspatch.
		return controller.Options{AgentName: agentName, SkipStatusUpdates: true}
	})
	store, err := settings.NewStore(opsconfiginfoinformer.Get(ctx), func() {
		impl.GlobalResync(changeWorkloads.Informer())
	})
	must(err)
	r.settings = store.Get

	_, err = changeWorkloads.Informer().AddEventHandler(controller.HandleAll(impl.Enqueue))
	must(err)
	// A request, a rollback, or a roll-out that gets on.
	must(workloads.Handle(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { enqueue(impl, workloadinformer.Deleted(obj)) },
		UpdateFunc: func(before, after any) {
			if differs(workloadinformer.Deleted(before), workloadinformer.Deleted(after)) {
				enqueue(impl, workloadinformer.Deleted(after))
			}
		},
	}))
	// Opting in, and out again.
	_, err = namespaces.Informer().AddEventHandler(controller.HandleAll(func(obj any) {
		ns, ok := obj.(*corev1.Namespace)
		if !ok || !v1alpha1.OptedIn(ns) {
			return
		}
		impl.FilteredGlobalResync(func(obj any) bool {
			c, ok := obj.(*v1alpha1.ChangeWorkload)
			return ok && c.Namespace == ns.Name
		}, changeWorkloads.Informer())
	}))
	must(err)
	return impl
}

// differs leaves out updates of the status, of which a roll-out makes many, but
// for its end.
func differs(before, after *workload.Workload) bool {
	return before == nil || after == nil || before.ResourceVersion == after.ResourceVersion ||
		before.Generation != after.Generation || before.Complete != after.Complete ||
		before.Annotations[v1alpha1.RollbackRequestAnnotation] != after.Annotations[v1alpha1.RollbackRequestAnnotation] ||
		before.Annotations[v1alpha1.AttemptAnnotation] != after.Annotations[v1alpha1.AttemptAnnotation]
}

// enqueue looks at the release that a workload is at, and at the one that it
// was taken back from.
func enqueue(impl *controller.Impl, w *workload.Workload) {
	if w == nil {
		return
	}
	if release, known := v1alpha1.ReleaseOf(w.Annotations); known {
		impl.EnqueueKey(types.NamespacedName{Namespace: w.Namespace, Name: v1alpha1.ChangeWorkloadName(w.Name, release.Version)})
	}
	if record := v1alpha1.RollbackOf(w.Annotations); record != nil {
		impl.EnqueueKey(types.NamespacedName{Namespace: w.Namespace, Name: v1alpha1.ChangeWorkloadName(w.Name, record.FromVersion)})
	}
}
