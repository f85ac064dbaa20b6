package deployment

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	deploymentinformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/deployment"
	replicasetinformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/replicaset"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	reconcilerdeployment "knative.dev/pkg/client/injection/kube/reconciler/apps/v1/deployment"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/settings"
	changeclient "github.com/breakwater-dev/breakwater/client/injection/client"
	changeworkloadinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changeworkload"
	opsconfiginfoinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/opsconfiginfo"
	"github.com/breakwater-dev/breakwater/reconciler/optin"
	"github.com/breakwater-dev/breakwater/reconciler/wakeup"
)

const (
	// agentName is the source of our Kubernetes Events.
	agentName = "breakwater"
	// fieldManager owns what this binary writes.
	fieldManager = "controller"
	meterName    = "github.com/breakwater-dev/breakwater/reconciler/deployment"
	// workers is enough for opting in a namespace with hundreds of
	// Deployments within seconds; each costs one or two calls.
	workers = 4
)

// NewController returns the controller of Deployments. It sets the transform of
// their informer, which must not have been started.
func NewController(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
	logger := logging.FromContext(ctx)
	deployments := deploymentinformer.Get(ctx).Informer()
	replicaSets := replicasetinformer.Get(ctx)
	namespaces := namespaceinformer.Get(ctx)
	changeWorkloads := changeworkloadinformer.Get(ctx)
	if err := deployments.SetTransform(Trim); err != nil {
		logger.Panicw("trim the cache", "error", err)
	}
	store, err := settings.NewStore(opsconfiginfoinformer.Get(ctx), nil)
	if err != nil {
		logger.Panicw("settings", "error", err)
	}
	touched, err := otel.Meter(meterName).Int64Counter("breakwater.deployments.touched",
		metric.WithDescription("Updates that changed nothing, so that a Deployment passes the webhook again"))
	if err != nil {
		logger.Panicw("metrics", "error", err)
	}
	r := &Reconciler{
		kube:            kubeclient.Get(ctx),
		client:          changeclient.Get(ctx),
		namespaces:      namespaces.Lister(),
		replicaSets:     replicaSets.Lister(),
		changeWorkloads: changeWorkloads.Lister(),
		settings:        store.Get,
		cluster:         watchCluster(cmw, namespaces.Lister()),
		touches:         wakeup.New(clock.RealClock{}),
		touched:         touched,
		clock:           clock.RealClock{},
	}
	guarded := optin.Filter(namespaces.Lister())
	impl := reconcilerdeployment.NewImpl(ctx, r, func(*controller.Impl) controller.Options {
		return controller.Options{
			AgentName:         agentName,
			SkipStatusUpdates: true, // a Deployment's status is Kubernetes' own
			PromoteFilterFunc: guarded,
		}
	})
	impl.Concurrency = workers

	must := func(_ cache.ResourceEventHandlerRegistration, err error) {
		if err != nil {
			logger.Panicw("watch", "error", err)
		}
	}
	must(deployments.AddEventHandler(cache.FilteringResourceEventHandler{
		FilterFunc: guarded,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    impl.Enqueue,
			UpdateFunc: onChange(differs, impl.Enqueue),
		},
	}))
	// Opting a namespace in is news for everything in it.
	must(namespaces.Informer().AddEventHandler(optin.Handler(func(namespace string) {
		impl.FilteredGlobalResync(func(obj any) bool {
			d, ok := obj.(*appsv1.Deployment)
			return ok && d.Namespace == namespace
		}, deployments)
	})))
	// A Success ends the history; a deletion makes room for a new attempt.
	must(changeWorkloads.Informer().AddEventHandler(cache.FilteringResourceEventHandler{
		FilterFunc: ofDeployment,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    impl.EnqueueControllerOf,
			UpdateFunc: onChange(phaseDiffers, impl.EnqueueControllerOf),
			DeleteFunc: impl.EnqueueControllerOf,
		},
	}))
	// A ReplicaSet may carry the version of another: see Input.Carriers.
	must(replicaSets.Informer().AddEventHandler(cache.FilteringResourceEventHandler{
		FilterFunc: func(obj any) bool { return ofDeployment(obj) && guarded(obj) },
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    impl.EnqueueControllerOf,
			UpdateFunc: onChange(versionDiffers, impl.EnqueueControllerOf),
		},
	}))
	return impl
}
