package generate

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	deploymentinformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/deployment"
	statefulsetinformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/statefulset"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	pdbinformer "knative.dev/pkg/client/injection/kube/informers/policy/v1/poddisruptionbudget"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/kmeta"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	policyclient "github.com/breakwater-dev/breakwater/client/injection/client"
	budgetinformer "github.com/breakwater-dev/breakwater/client/injection/informers/policy/v1alpha1/podunavailablebudget"
	"github.com/breakwater-dev/breakwater/reconciler/recorder"
)

// queueName is part of the name of the Lease, which RBAC names.
const queueName = "generate"

// NewController returns the controller of generated budgets. The informers of
// workloads are trimmed by package reconciler/budget.
func NewController(ctx context.Context, _ configmap.Watcher) *controller.Impl {
	r := &Reconciler{
		workloads:  workloads{deploymentinformer.Get(ctx).Lister(), statefulsetinformer.Get(ctx).Lister()},
		namespaces: namespaceinformer.Get(ctx).Lister(),
		budgets:    budgetinformer.Get(ctx).Lister(),
		pdbs:       pdbinformer.Get(ctx).Lister(),
		kube:       kubeclient.Get(ctx),
		policies:   policyclient.Get(ctx),
		recorder:   recorder.New(ctx, kubeclient.Get(ctx)),
	}
	r.PromoteFunc = func(b reconciler.Bucket, enqueue func(reconciler.Bucket, types.NamespacedName)) error {
		return r.all("", func(key types.NamespacedName) { enqueue(b, key) })
	}
	logger := logging.FromContext(ctx)
	impl := controller.NewContext(ctx, r, controller.ControllerOptions{WorkQueueName: queueName, Logger: logger.Named(queueName)})
	if err := watch(ctx, impl, r); err != nil {
		logger.Panicw("wire the controller of generated budgets", "error", err)
	}
	return impl
}

// all tells of the workloads of a namespace, or of all with "".
func (r *Reconciler) all(namespace string, tell func(types.NamespacedName)) error {
	deployments, err := r.workloads.deployments.Deployments(namespace).List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list Deployments: %w", err)
	}
	for _, d := range deployments {
		tell(keyOf(deployment, d.Namespace, d.Name))
	}
	sets, err := r.workloads.statefulSets.StatefulSets(namespace).List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list StatefulSets: %w", err)
	}
	for _, s := range sets {
		tell(keyOf(statefulSet, s.Namespace, s.Name))
	}
	return nil
}

func watch(ctx context.Context, impl *controller.Impl, r *Reconciler) error {
	of := func(kind string) func(any) {
		return func(obj any) {
			if o, err := kmeta.DeletionHandlingAccessor(obj); err == nil {
				impl.EnqueueKey(keyOf(kind, o.GetNamespace(), o.GetName()))
			}
		}
	}
	owner := func(obj any) {
		o, err := kmeta.DeletionHandlingAccessor(obj)
		if err != nil {
			return
		}
		if ref := metav1.GetControllerOfNoCopy(o); ref != nil && (ref.Kind == deployment || ref.Kind == statefulSet) {
			impl.EnqueueKey(keyOf(ref.Kind, o.GetNamespace(), ref.Name))
		}
	}
	within := func(obj any) {
		if o, err := kmeta.DeletionHandlingAccessor(obj); err == nil {
			_ = r.all(o.GetName(), impl.EnqueueKey) // stores in memory have no error to give
		}
	}
	for _, w := range []struct {
		informer cache.SharedIndexInformer
		handle   func(any)
	}{
		{deploymentinformer.Get(ctx).Informer(), of(deployment)},
		{statefulsetinformer.Get(ctx).Informer(), of(statefulSet)},
		{budgetinformer.Get(ctx).Informer(), owner},
		{pdbinformer.Get(ctx).Informer(), owner},
		{namespaceinformer.Get(ctx).Informer(), within},
	} {
		if _, err := w.informer.AddEventHandler(controller.HandleAll(w.handle)); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
	}
	return nil
}
