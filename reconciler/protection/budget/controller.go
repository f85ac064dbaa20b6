package budget

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	daemonsetinformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/daemonset"
	deploymentinformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/deployment"
	replicasetinformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/replicaset"
	statefulsetinformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/statefulset"
	podinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/pod"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/injection/clients/dynamicclient"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	policyclient "github.com/breakwater-dev/breakwater/client/injection/client"
	budgetinformer "github.com/breakwater-dev/breakwater/client/injection/informers/policy/v1alpha1/podunavailablebudget"
	reconcilerbudget "github.com/breakwater-dev/breakwater/client/injection/reconciler/policy/v1alpha1/podunavailablebudget"
	"github.com/breakwater-dev/breakwater/internal/apidiscovery"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/podlist"
	"github.com/breakwater-dev/breakwater/internal/wiring"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// workers is how many budgets are reconciled concurrently.
const workers = 8

// NewController returns the constructor of the controller of budgets;
// chargeTimeout is how long a charge without an effect is kept. It is read after
// the flags are parsed.
func NewController(chargeTimeout *time.Duration) injection.ControllerConstructor {
	return func(ctx context.Context, _ configmap.Watcher) *controller.Impl {
		must := wiring.NewMust(ctx, "set up the controller of PodUnavailableBudgets")
		for _, owners := range workloads(ctx) {
			must(owners.SetTransform(trimOwner))
		}
		r, err := newReconciler(ctx, *chargeTimeout)
		must(err)
		must(podinformer.Get(ctx).Informer().SetTransform(r.podWatch.before(trimPod)))
		impl := reconcilerbudget.NewImpl(ctx, r, func(*controller.Impl) controller.Options {
			return controller.Options{SkipStatusUpdates: true} // written with compare-and-swap: see write
		})
		impl.Concurrency = workers
		r.guarding.run(ctx, impl.EnqueueKey)
		watch(ctx, must, impl, r)
		return impl
	}
}

func workloads(ctx context.Context) []cache.SharedIndexInformer {
	return []cache.SharedIndexInformer{
		deploymentinformer.Get(ctx).Informer(), replicasetinformer.Get(ctx).Informer(),
		statefulsetinformer.Get(ctx).Informer(), daemonsetinformer.Get(ctx).Informer(),
	}
}

func newReconciler(ctx context.Context, chargeTimeout time.Duration) (*Reconciler, error) {
	kube := kubeclient.Get(ctx)
	probes, err := newProber(injection.GetConfig(ctx), kube)
	if err != nil {
		return nil, err
	}
	return &Reconciler{
		client: policyclient.Get(ctx).PolicyV1alpha1(), podLister: podinformer.Get(ctx).Lister(), podLists: podlist.New(kube.CoreV1(), maxListed, budget.TrimPod),
		owners: &owners{
			deployments: deploymentinformer.Get(ctx).Lister(), replicaSets: replicasetinformer.Get(ctx).Lister(),
			statefulSets: statefulsetinformer.Get(ctx).Lister(), daemonSets: daemonsetinformer.Get(ctx).Lister(),
			client: dynamicclient.Get(ctx), cache: utilcache.NewExpiring(),
			services: newKnativeServices(dynamicclient.Get(ctx), logging.FromContext(ctx), func() (bool, error) {
				kind, err := apidiscovery.KindOf(kube.Discovery(), workload.KnativeService.GroupVersionResource())
				return kind == workload.KnativeService.Kind, err
			}),
			mapper: apidiscovery.NewMapper(restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kube.Discovery()))),
		},
		podWatch: &podWatch{}, charges: newChargeTimes(clock.RealClock{}, chargeTimeout), throttle: newThrottle(clock.RealClock{}),
		guarding: newGuardingCheck(probes), refunded: metrics.NewCounter(metrics.Meter(), "breakwater_budget_charges_refunded_total"),
	}, nil
}

// watch enqueues budgets when their pods or owners change.
func watch(ctx context.Context, must wiring.Must, impl *controller.Impl, r *Reconciler) {
	must(budgetinformer.Get(ctx).Informer().AddIndexers(podIndexers))
	must(podinformer.Get(ctx).Informer().AddIndexers(controllerIndexers))
	w := affectedBudgets{budgets: budgetinformer.Get(ctx).Informer().GetIndexer(), pods: podinformer.Get(ctx).Informer().GetIndexer(), owners: r.owners}
	enqueue := func(budgets []*v1alpha1.PodUnavailableBudget) {
		for _, b := range budgets {
			key := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
			impl.EnqueueKeyAfter(key, r.throttle.wait(key, b))
		}
	}
	must.Watch(budgetinformer.Get(ctx).Informer(), controller.HandleAll(impl.Enqueue))
	ofPod := func(obj any) {
		if p, ok := wiring.Object[*corev1.Pod](obj); ok {
			enqueue(w.covering(p))
		}
	}
	must.Watch(podinformer.Get(ctx).Informer(), cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { r.podWatch.observe(obj); ofPod(obj) },
		UpdateFunc: func(before, after any) { r.podWatch.observe(after); ofPod(before); ofPod(after) },
		DeleteFunc: func(obj any) { r.podWatch.observe(obj); ofPod(obj) },
	})
	r.owners.services.changed = func(namespace, name string) { enqueue(w.ofService(namespace, name)) }
	go r.owners.services.run(ctx)
	for _, informer := range workloads(ctx) {
		must.Watch(informer, ofWorkload(func(workload owner, namespace string) { enqueue(w.affectedBy(workload, namespace)) }))
	}
}
