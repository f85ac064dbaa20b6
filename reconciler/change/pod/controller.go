package pod

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	revisioninformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/controllerrevision"
	replicasetinformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/replicaset"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	podinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/pod"
	reconcilerpod "knative.dev/pkg/client/injection/kube/reconciler/core/v1/pod"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/wiring"
	"github.com/breakwater-dev/breakwater/reconciler/change/namespaceoptin"
	"github.com/breakwater-dev/breakwater/reconciler/change/releasefinder"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer"
)

// workers is how many pods are labeled concurrently.
const workers = 8

// NewController returns the controller of pods. It sets the transforms of the
// informers of pods and ReplicaSets, which must not have been started.
func NewController(ctx context.Context, _ configmap.Watcher, sender events.Sender) *controller.Impl {
	must := wiring.NewMust(ctx, "set up the controller of pods")
	must(podinformer.Get(ctx).Informer().SetTransform(Trim))
	must(replicasetinformer.Get(ctx).Informer().SetTransform(TrimReplicaSet))
	known, err := newInputs(ctx)
	must(err)
	impl := reconcilerpod.NewImpl(ctx, &Reconciler{
		kube: kubeclient.Get(ctx), inputs: known, labels: newLabelLimiter(clock.RealClock{}), sender: sender,
		finished: metrics.NewCounter(metrics.Meter(), "breakwater_pods_finished_total"),
	}, func(*controller.Impl) controller.Options {
		return controller.Options{
			SkipStatusUpdates: true, // the kubelet owns a pod's status
			PromoteFilterFunc: known.due,
		}
	})
	impl.Concurrency = workers
	watch(ctx, must, impl, known)
	return impl
}

func newInputs(ctx context.Context) (inputs, error) {
	finder, err := releasefinder.New(ctx)
	workloads := workloadinformer.Get(ctx)
	return inputs{
		optedIn: namespaceoptin.Filter(namespaceinformer.Get(ctx).Lister()), releases: finder,
		rollingOut: func(namespace string, of v1alpha1.WorkloadRef) bool {
			w := workloads.Find(namespace, of)
			return w != nil && !w.Complete
		},
	}, err
}

// watch enqueues pods that are due. The caches fill in any order, so the revision
// of a pod may be cached after the pod: then the pod is enqueued again.
func watch(ctx context.Context, must wiring.Must, impl *controller.Impl, known inputs) {
	pods := podinformer.Get(ctx)
	must.Watch(pods.Informer(), cache.FilteringResourceEventHandler{
		FilterFunc: known.due,
		Handler:    cache.ResourceEventHandlerFuncs{AddFunc: impl.Enqueue, UpdateFunc: controller.PassNew(impl.Enqueue)},
	})
	enqueue := func(all []*corev1.Pod, err error) {
		must(err) // an in-memory store returns no error
		for _, p := range all {
			if known.due(p) {
				impl.EnqueueSlow(p)
			}
		}
	}
	podsOf := func(owner types.UID) { enqueue(releasefinder.Owned[*corev1.Pod](pods.Informer().GetIndexer(), owner)) }
	podsOfObject := func(owner metav1.Object) { podsOf(owner.GetUID()) }
	must.Watch(namespaceinformer.Get(ctx).Informer(), namespaceoptin.Handler(func(namespace string) {
		enqueue(pods.Lister().Pods(namespace).List(labels.Everything()))
	}))
	must.Watch(replicasetinformer.Get(ctx).Informer(), onRelease(known.optedIn, podsOfObject))
	// The attempt of a ControllerRevision is that of its workload.
	must(workloadinformer.Get(ctx).Handle(onRelease(known.optedIn, podsOfObject)))
	must.Watch(revisioninformer.Get(ctx).Informer(), cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		if r, ok := obj.(*appsv1.ControllerRevision); ok && known.optedIn(r) {
			if owner := metav1.GetControllerOfNoCopy(r); owner != nil {
				podsOf(owner.UID)
			}
		}
	}})
}
