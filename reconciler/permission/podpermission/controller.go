package podpermission

import (
	"context"

	"go.opentelemetry.io/otel/metric"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	nodeinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/node"
	podinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/pod"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/contextclock"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/optionalconfig"
	"github.com/breakwater-dev/breakwater/internal/servingcert"
	"github.com/breakwater-dev/breakwater/internal/wiring"
	"github.com/breakwater-dev/breakwater/permission/centreclient"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/requiredsets"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

const (
	queueName = "permission"
	// workers is how many pods are reconciled concurrently; each may wait for the
	// centre.
	workers = 16
	// tokenFile is where the manifest mounts the token for the permission centre.
	tokenFile = "/var/run/secrets/stke.io/permission-centre/token"
	// centreCallsPerSecond is the limit of calls to the centre per second. It allows the deletion of
	// a namespace with a thousand pods in seconds without overloading the centre.
	centreCallsPerSecond = 200
)

// NewController returns the controller of pods that need permissions. owners reads
// the owner chain of a pod.
func NewController(ctx context.Context, cmw configmap.Watcher, sender events.Sender, owners requiredsets.Owners) *controller.Impl {
	must := wiring.NewMust(ctx, "set up the permission controller")
	pods := podinformer.Get(ctx)
	must(pods.Informer().SetTransform(trimPod))
	must(nodeinformer.Get(ctx).Informer().SetTransform(trimNode))
	store := settings.NewStore()
	store.Follow(ctx, cmw)
	trust := &servingcert.Bundle{Missing: podmeta.ErrNoBundle}
	optionalconfig.Watch(cmw, podmeta.BundleName, func(cm *corev1.ConfigMap) { trust.Update(cm.Data) })
	centre := centreclient.New(centreclient.Options{URL: func() string { return store.Get().CentreURL }, TokenFile: tokenFile, Trust: trust, Limit: rate.NewLimiter(centreCallsPerSecond, centreCallsPerSecond)})
	r := newReconciler(ctx, sender, owners, centre, store)
	measure(metrics.Meter(), r)
	logger := logging.FromContext(ctx)
	impl := controller.NewContext(ctx, r, controller.ControllerOptions{WorkQueueName: queueName, Logger: logger.Named(queueName), Concurrency: workers})
	must.Watch(pods.Informer(), controller.HandleAll(impl.Enqueue))
	must.Watch(namespaceinformer.Get(ctx).Informer(), namespaceHandler(func(namespace string) {
		all, err := r.pods.Pods(namespace).List(labels.Everything())
		if err != nil {
			logger.Errorw("could not list the pods of a namespace", "namespace", namespace, "error", err)
		}
		for _, p := range all {
			impl.Enqueue(p)
		}
	}))
	c := &periodicTasks{Reconciler: r, lister: centre, podReportReceiver: centre}
	go c.run(ctx)
	return impl
}

func newReconciler(ctx context.Context, sender events.Sender, owners requiredsets.Owners, centre *centreclient.Client, store *settings.Store) *Reconciler {
	kube, namespaces, clock := kubeclient.Get(ctx), namespaceinformer.Get(ctx).Lister(), contextclock.Get(ctx)
	recorder := controller.GetEventRecorder(ctx)
	r := &Reconciler{
		kube: kube, pods: podinformer.Get(ctx).Lister(), nodes: nodeinformer.Get(ctx).Lister(), namespaces: namespaces, centre: centre,
		requiredSets: requiredsets.Resolver{Owners: owners, Namespaces: namespaces, Client: kube.CoreV1().Namespaces()},
		settings:     store.Get, clock: clock, recorder: recorder, reporter: newReporter(recorder, sender, metrics.Meter()),
		ownersWithoutSets: newOwnersWithoutSets(clock), ownersReads: newOwnersReads(), retries: newRetries(), unsentLetGo: newUnsentLetGoPods(), uninjected: newUninjectedPods(), leaks: newLeakTracker(recorder),
	}
	r.PromoteFunc = func(b reconciler.Bucket, enqueue func(reconciler.Bucket, types.NamespacedName)) error {
		all, err := r.pods.List(labels.Everything())
		for _, p := range all {
			enqueue(b, types.NamespacedName{Namespace: p.Namespace, Name: p.Name})
		}
		return err
	}
	return r
}

// measure observes the tracked pods and leaks of the leader, and in each process the pods that it let go
// and has not sent yet.
func measure(meter metric.Meter, r *Reconciler) {
	observe := func(name string, read func(observe func(int64, ...string))) {
		metrics.Observe(meter, name, func(observe func(int64, ...string)) {
			if r.IsLeaderFor(leaderKey) {
				read(observe)
			}
		})
	}
	observe("breakwater_permission_uninjected_pods", func(observe func(int64, ...string)) {
		for reason, n := range r.uninjected.counts() {
			observe(n, reason)
		}
	})
	observe("breakwater_permission_leaked_addresses", func(observe func(int64, ...string)) {
		addresses, _ := r.leaks.counts()
		observe(addresses)
	})
	observe("breakwater_permission_leaked_address_pods", func(observe func(int64, ...string)) {
		_, pods := r.leaks.counts()
		observe(pods)
	})
	metrics.Observe(meter, "breakwater_permission_unsent_let_go_pods", func(observe func(int64, ...string)) { observe(r.unsentLetGo.count()) })
}
