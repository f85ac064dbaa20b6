package generatedbudget

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	deploymentinformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/deployment"
	statefulsetinformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/statefulset"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	pdbinformer "knative.dev/pkg/client/injection/kube/informers/policy/v1/poddisruptionbudget"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection/clients/dynamicclient"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	policyclient "github.com/breakwater-dev/breakwater/client/injection/client"
	budgetinformer "github.com/breakwater-dev/breakwater/client/injection/informers/policy/v1alpha1/podunavailablebudget"
	"github.com/breakwater-dev/breakwater/internal/apidiscovery"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

const queueName = "generate"

// NewController returns the controller of generated budgets. Package
// reconciler/protection/budget trims the informers of workloads.
func NewController(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
	logger, kube := logging.FromContext(ctx), kubeclient.Get(ctx)
	others := newCustomWorkloads(dynamicclient.Get(ctx), logger, func(resource schema.GroupVersionResource) (bool, error) {
		kind, err := apidiscovery.KindOf(kube.Discovery(), resource)
		return kind != "", err
	})
	cluster := &defaults{recorder: controller.GetEventRecorder(ctx), logger: logger}
	r := &Reconciler{
		workloads:  workloads{deploymentinformer.Get(ctx).Lister(), statefulsetinformer.Get(ctx).Lister(), others},
		namespaces: namespaceinformer.Get(ctx).Lister(),
		budgets:    budgetinformer.Get(ctx).Lister(),
		pdbs:       pdbinformer.Get(ctx).Lister(),
		kube:       kube,
		policies:   policyclient.Get(ctx),
		recorder:   cluster.recorder,
		defaults:   cluster.get,
	}
	r.PromoteFunc = func(b reconciler.Bucket, enqueue func(reconciler.Bucket, types.NamespacedName)) error {
		return r.workloads.enqueueAll("", func(key types.NamespacedName) { enqueue(b, key) })
	}
	impl := controller.NewContext(ctx, r, controller.ControllerOptions{WorkQueueName: queueName, Logger: logger.Named(queueName)})
	watch(ctx, wiring.NewMust(ctx, "set up the controller of generated budgets"), impl, r)
	others.changed = impl.EnqueueKey
	cluster.changed = func() { _ = r.workloads.enqueueAll("", impl.EnqueueKey) } // cache listers return no error
	cluster.follow(cmw)
	go others.run(ctx)
	return impl
}

// watch enqueues a workload when it changes, its namespace, its generated budget, or another
// PodDisruptionBudget that selects its pods.
func watch(ctx context.Context, must wiring.Must, impl *controller.Impl, r *Reconciler) {
	of := func(k kind) cache.ResourceEventHandler {
		return controller.HandleAll(func(obj any) {
			if o, ok := wiring.Object[metav1.Object](obj); ok {
				impl.EnqueueKey(keyOf(k, o.GetNamespace(), o.GetName()))
			}
		})
	}
	owner := controller.HandleAll(func(obj any) {
		o, ok := wiring.Object[metav1.Object](obj)
		if !ok {
			return
		}
		ref := metav1.GetControllerOfNoCopy(o)
		if ref == nil {
			return
		}
		if k, ok := kindOf(ref.APIVersion, ref.Kind); ok {
			impl.EnqueueKey(keyOf(k, o.GetNamespace(), ref.Name))
		}
	})
	within := controller.HandleAll(func(obj any) {
		if o, ok := wiring.Object[metav1.Object](obj); ok {
			_ = r.workloads.enqueueAll(o.GetName(), impl.EnqueueKey) // cache listers return no error
		}
	})
	must.Watch(deploymentinformer.Get(ctx).Informer(), of(deployment))
	must.Watch(statefulsetinformer.Get(ctx).Informer(), of(statefulSet))
	must.Watch(budgetinformer.Get(ctx).Informer(), owner)
	must.Watch(pdbinformer.Get(ctx).Informer(), owner)
	must.Watch(pdbinformer.Get(ctx).Informer(), r.onPDB(impl.EnqueueKey))
	must.Watch(namespaceinformer.Get(ctx).Informer(), within)
}
