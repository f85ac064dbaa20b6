package changepod

import (
	"context"

	"golang.org/x/time/rate"
	"k8s.io/client-go/tools/cache"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	changeclient "github.com/breakwater-dev/breakwater/client/injection/client"
	changepodinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changepod"
	changeworkloadinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changeworkload"
	opsconfiginfoinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/opsconfiginfo"
	reconcilerchangepod "github.com/breakwater-dev/breakwater/client/injection/reconciler/change/v1alpha1/changepod"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/contextclock"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/wiring"
	"github.com/breakwater-dev/breakwater/reconciler/change/callqueue"
	"github.com/breakwater-dev/breakwater/reconciler/change/namespaceoptin"
)

// NewController returns the controller of ChangePods. It sets the transform of their
// informer, which must not have been started. The queue of calls is that of the process;
// this controller sets its rate.
func NewController(ctx context.Context, cmw configmap.Watcher, sender events.Sender, calls *callqueue.Queue) *controller.Impl {
	must := wiring.NewMust(ctx, "set up the controller of ChangePods")
	changePods := changepodinformer.Get(ctx).Informer()
	must(changePods.SetTransform(trim))
	r := &Reconciler{
		interimWrites:   rate.NewLimiter(rate.Every(interimWritePeriod), interimWriteBurst),
		unjudged:        metrics.NewCounter(metrics.Meter(), "breakwater_batches_unjudged_total"),
		client:          changeclient.Get(ctx),
		namespaces:      namespaceinformer.Get(ctx).Lister(),
		changeWorkloads: changeworkloadinformer.Get(ctx).Lister(),
		sender:          sender,
		wakeups:         resend.New(contextclock.Get(ctx)),
		judgeWakeUps:    resend.NewWithin(contextclock.Get(ctx), minLookInterval, maxLookInterval),
		calls:           calls,
		clock:           contextclock.Get(ctx),
	}
	impl := reconcilerchangepod.NewImpl(ctx, r, func(*controller.Impl) controller.Options {
		// Other writers share the status: see statuspatch.
		return controller.Options{SkipStatusUpdates: true, PromoteFunc: r.decidingSince.Promote, DemoteFunc: r.decidingSince.Demote}
	})

	r.enqueue = impl.EnqueueKey
	altershield.WatchQPS(cmw, calls.SetQPS)

	resync := func() { impl.FilteredGlobalResync(hasNotEnded, changePods) }
	store, err := settings.NewStore(opsconfiginfoinformer.Get(ctx), resync)
	must(err)
	r.settings = store.Get
	r.serverConfigured = altershield.WatchConfigured(ctx, cmw, resync)
	watch(ctx, must, impl, r)
	return impl
}

// watch enqueues a ChangePod when an object changes that its status is derived from.
func watch(ctx context.Context, must wiring.Must, impl *controller.Impl, r *Reconciler) {
	changePods := changepodinformer.Get(ctx).Informer()
	must.Watch(changePods, cache.ResourceEventHandlerFuncs{
		AddFunc:    impl.Enqueue,
		UpdateFunc: controller.PassNew(impl.Enqueue),
		DeleteFunc: func(obj any) {
			if c, ok := wiring.Object[*v1alpha1.ChangePod](obj); ok {
				r.forget(c)
			}
		},
	})
	// At an opt-out, ReconcileKind pauses decidingSince.
	must.Watch(namespaceinformer.Get(ctx).Informer(), namespaceoptin.ChangeHandler(func(namespace string) {
		impl.FilteredGlobalResync(func(obj any) bool {
			c, ok := obj.(*v1alpha1.ChangePod)
			return ok && c.Namespace == namespace && hasNotEnded(c)
		}, changePods)
	}))
	// A release that was superseded, or whose order was not accepted, ends its
	// batches. After a failed order check none starts until a person overrules it.
	must.Watch(changeworkloadinformer.Get(ctx).Informer(), cache.FilteringResourceEventHandler{
		FilterFunc: func(obj any) bool {
			c, ok := obj.(*v1alpha1.ChangeWorkload)
			return ok && (c.Status.OrderAbandoned() || c.Status.FailedAndReplaced() || c.Status.OrderCheckFailed())
		},
		Handler: controller.HandleAll(func(obj any) {
			owner, ok := wiring.Object[*v1alpha1.ChangeWorkload](obj)
			if !ok {
				return
			}
			impl.FilteredGlobalResync(func(obj any) bool {
				c, ok := obj.(*v1alpha1.ChangePod)
				return ok && c.Namespace == owner.Namespace && c.Spec.ChangeWorkloadID == owner.Name
			}, changePods)
		}),
	})
}

// hasNotEnded reports whether a change of configuration can matter to a ChangePod.
func hasNotEnded(obj any) bool {
	c, ok := obj.(*v1alpha1.ChangePod)
	return ok && c.Status.Phase != v1alpha1.BatchExecuteDone
}
