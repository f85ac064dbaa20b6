package replay

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection/clients/dynamicclient"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/wiring"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/namespaceoptin"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer"
)

const (
	queueName = "replay"
	// workers is how many events are sent at a time. The in-memory Broker of Knative
	// answers only when the function has answered, so a send may take long.
	workers = 2
)

// NewController returns the controller of replays. It watches nothing of its own: the informer of
// workloads has their annotations.
func NewController(ctx context.Context, _ configmap.Watcher, sender Sender) *controller.Impl {
	must := wiring.NewMust(ctx, "set up the controller of replays")
	workloads := workloadinformer.Get(ctx)
	optedIn := namespaceoptin.Filter(namespaceinformer.Get(ctx).Lister())
	requested := func(obj any) bool {
		w, ok := wiring.Object[*workload.Workload](obj)
		return ok && w.Annotations[v1alpha1.ReplayRequestAnnotation] != "" && optedIn(w)
	}
	kube := kubeclient.Get(ctx)
	r := &Reconciler{
		kube: kube, dynamic: dynamicclient.Get(ctx), workloads: workloads, requested: requested, sender: sender,
		verifier: eventsigning.NewEventStore(kube.CoreV1(), clock.RealClock{}),
		recorder: controller.GetEventRecorder(ctx), clock: clock.RealClock{},
	}
	r.PromoteFunc = func(b reconciler.Bucket, enqueue func(reconciler.Bucket, types.NamespacedName)) error {
		for _, w := range workloads.All() {
			if requested(w) {
				enqueue(b, workloadinformer.QueueKey(w.Kind, w.Namespace, w.Name))
			}
		}
		return nil
	}
	impl := controller.NewContext(ctx, r, controller.ControllerOptions{
		WorkQueueName: queueName, Logger: logging.FromContext(ctx).Named(queueName), Concurrency: workers,
	})
	must(workloads.Handle(cache.FilteringResourceEventHandler{
		FilterFunc: requested,
		Handler: controller.HandleAll(func(obj any) {
			if w, ok := wiring.Object[*workload.Workload](obj); ok {
				impl.EnqueueKey(workloadinformer.QueueKey(w.Kind, w.Namespace, w.Name))
			}
		}),
	}))
	return impl
}
