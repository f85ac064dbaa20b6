package opsconfiginfo

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	changeclient "github.com/breakwater-dev/breakwater/client/injection/client"
	opsconfiginfoinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/opsconfiginfo"
	reconcileropsconfiginfo "github.com/breakwater-dev/breakwater/client/injection/reconciler/change/v1alpha1/opsconfiginfo"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

// NewController returns the controller of OpsConfigInfo.
func NewController(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
	logger := logging.FromContext(ctx)
	informer := opsconfiginfoinformer.Get(ctx)
	r := &Reconciler{
		client:    changeclient.Get(ctx),
		lister:    informer.Lister(),
		installed: watchInstalled(cmw, kubeclient.Get(ctx)),
		clock:     clock.RealClock{},
	}
	impl := reconcileropsconfiginfo.NewImpl(ctx, r, func(impl *controller.Impl) controller.Options {
		return controller.Options{
			SkipStatusUpdates: true, // statuspatch writes the condition
			PromoteFunc:       func(reconciler.Bucket) { queueDefaults(impl) },
		}
	})
	// Without leader election there is no promotion.
	queueDefaults(impl)

	// Which of several objects takes effect depends on all of them.
	must := wiring.NewMust(ctx, "set up the controller of OpsConfigInfos")
	must.Watch(informer.Informer(), controller.HandleAll(func(obj any) {
		impl.Enqueue(obj)
		all, err := informer.Lister().List(labels.Everything())
		if err != nil {
			logger.Errorw("could not list the OpsConfigInfos", "error", err)
		}
		for _, c := range all {
			impl.Enqueue(c)
		}
	}))
	return impl
}

// queueDefaults enqueues the default objects, whether they exist or not.
func queueDefaults(impl *controller.Impl) {
	for _, key := range defaultKeys() {
		impl.EnqueueKey(key)
	}
}
