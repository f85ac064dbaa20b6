package pod

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	replicasetinformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/replicaset"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	podinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/pod"
	reconcilerpod "knative.dev/pkg/client/injection/kube/reconciler/core/v1/pod"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/reconciler/optin"
)

const (
	// agentName is the source of our Kubernetes Events.
	agentName = "breakwater"
	meterName = "github.com/breakwater-dev/breakwater/reconciler/pod"
	// workers is how many pods are labelled at a time: a thousand that become
	// ready together are through in seconds.
	workers = 8
)

// NewController returns the controller of pods. It sets the transforms of the
// informers of pods and ReplicaSets, which must not have been started.
func NewController(ctx context.Context, _ configmap.Watcher, sender Sender) *controller.Impl {
	logger := logging.FromContext(ctx)
	pods, lister := podinformer.Get(ctx).Informer(), podinformer.Get(ctx).Lister()
	replicaSets, namespaces := replicasetinformer.Get(ctx), namespaceinformer.Get(ctx)
	must := func(err error) {
		if err != nil {
			logger.Panicw("wire the controller of pods", "error", err)
		}
	}
	must(pods.SetTransform(Trim))
	must(replicaSets.Informer().SetTransform(TrimReplicaSet))
	counter, err := otel.Meter(meterName).Int64Counter("breakwater.pods.finished",
		metric.WithDescription("Pods of a release that became ready and were labelled"))
	must(err)

	known := facts{guarded: optin.Filter(namespaces.Lister()), replicaSets: replicaSets.Lister()}
	impl := reconcilerpod.NewImpl(ctx, &Reconciler{
		kube: kubeclient.Get(ctx), facts: known, sender: sender, finished: counter,
	}, func(*controller.Impl) controller.Options {
		return controller.Options{
			AgentName:         agentName,
			SkipStatusUpdates: true, // a pod's status is the kubelet's
			PromoteFilterFunc: known.due,
		}
	})
	impl.Concurrency = workers

	watch := func(informer cache.SharedInformer, handler cache.ResourceEventHandler) {
		_, err := informer.AddEventHandler(handler)
		must(err)
	}
	watch(pods, cache.FilteringResourceEventHandler{
		FilterFunc: known.due,
		Handler:    cache.ResourceEventHandlerFuncs{AddFunc: impl.Enqueue, UpdateFunc: controller.PassNew(impl.Enqueue)},
	})
	// The caches fill in any order, and a release becomes known with its
	// ReplicaSet: what made a pod not due may be told after the pod.
	again := func(namespace string, mine func(*corev1.Pod) bool) {
		all, err := lister.Pods(namespace).List(labels.Everything())
		must(err) // a lister over a cache has no error to give
		for _, p := range all {
			if mine(p) && known.due(p) {
				impl.EnqueueSlow(p)
			}
		}
	}
	watch(namespaces.Informer(), optin.Handler(func(namespace string) {
		again(namespace, func(*corev1.Pod) bool { return true })
	}))
	watch(replicaSets.Informer(), onRelease(known.guarded, func(rs *appsv1.ReplicaSet) {
		again(rs.Namespace, func(p *corev1.Pod) bool { return metav1.IsControlledBy(p, rs) })
	}))
	return impl
}
