package changeworkload

import (
	"context"
	"fmt"
	"time"

	"k8s.io/utils/lru"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	podinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/pod"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection/clients/dynamicclient"

	"github.com/breakwater-dev/breakwater/altershield"
	changeclient "github.com/breakwater-dev/breakwater/client/injection/client"
	changepodinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changepod"
	changeworkloadinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changeworkload"
	opsconfiginfoinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/opsconfiginfo"
	metriccheckinformer "github.com/breakwater-dev/breakwater/client/injection/informers/judge/v1alpha1/metriccheck"
	reconcilerchangeworkload "github.com/breakwater-dev/breakwater/client/injection/reconciler/change/v1alpha1/changeworkload"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/contextclock"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/wiring"
	"github.com/breakwater-dev/breakwater/reconciler/change/callqueue"
	"github.com/breakwater-dev/breakwater/reconciler/change/namespaceoptin"
	"github.com/breakwater-dev/breakwater/reconciler/change/nodestate"
	"github.com/breakwater-dev/breakwater/reconciler/change/releasefinder"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer"
)

// combineDelay is the delay between a change of a pod or batch and the reconciliation
// of its release. It combines hundreds of changes a second, because each
// reconciliation reads all pods and batches.
const combineDelay = 500 * time.Millisecond

// NewController returns the controller of ChangeWorkloads. It adds indexes to
// informers, which must not have been started. The queue of calls is that of the
// process.
func NewController(ctx context.Context, cmw configmap.Watcher, sender events.ConfirmingSender, calls *callqueue.Queue) *controller.Impl {
	must := wiring.NewMust(ctx, "set up the controller of ChangeWorkloads")
	must(releasefinder.Index(changeworkloadinformer.Get(ctx).Informer()))
	must(releasefinder.Index(changepodinformer.Get(ctx).Informer()))
	r, err := newReconciler(ctx, sender, calls)
	must(err)
	observeReleases(metrics.Meter(), r.lister, changepodinformer.Get(ctx).Lister(), namespaceoptin.Filter(r.namespaces), r.clock)
	impl := reconcilerchangeworkload.NewImpl(ctx, r, func(*controller.Impl) controller.Options {
		// Other writers share the status: see statuspatch.
		return controller.Options{SkipStatusUpdates: true, PromoteFunc: r.decidingSince.Promote, DemoteFunc: r.decidingSince.Demote}
	})
	if g, ok := impl.Reconciler.(generated); ok {
		impl.Reconciler = deletionReconciler{g, r}
	} else {
		must(fmt.Errorf("the generated reconciler is a %T", impl.Reconciler))
	}
	r.enqueue, r.enqueueAfter = impl.EnqueueKey, impl.EnqueueKeyAfter
	must(followSettings(ctx, cmw, impl, r))
	watch(ctx, must, impl, r)
	return impl
}

// newReconciler returns a Reconciler without settings.
func newReconciler(ctx context.Context, sender events.ConfirmingSender, calls *callqueue.Queue) (*Reconciler, error) {
	revisions, err := releasefinder.New(ctx)
	if err != nil {
		return nil, err
	}
	nodes, err := nodestate.Get(ctx)
	if err != nil {
		return nil, err
	}
	return &Reconciler{
		delivered:        lru.New(maxDelivered),
		eventTimes:       lru.New(maxEventTimes),
		unjudged:         metrics.NewCounter(metrics.Meter(), "breakwater_orders_unjudged_total"),
		dynamic:          dynamicclient.Get(ctx),
		client:           changeclient.Get(ctx),
		kube:             kubeclient.Get(ctx),
		workloads:        workloadinformer.Get(ctx),
		revisions:        revisions,
		namespaces:       namespaceinformer.Get(ctx).Lister(),
		lister:           changeworkloadinformer.Get(ctx).Lister(),
		metricChecks:     metriccheckinformer.Get(ctx).Lister(),
		changePods:       changepodinformer.Get(ctx).Informer().GetIndexer(),
		pods:             podinformer.Get(ctx).Informer().GetIndexer(),
		nodes:            nodes,
		sender:           sender,
		signer:           eventsigning.NewVerdictStore(kubeclient.Get(ctx).CoreV1(), contextclock.Get(ctx)),
		wakeups:          resend.New(contextclock.Get(ctx)),
		probationWakeUps: resend.NewWithin(contextclock.Get(ctx), minProbationWakeUp, maxProbationWakeUp),
		calls:            calls,
		clock:            contextclock.Get(ctx),
	}, nil
}

// followSettings reconciles all ChangeWorkloads when an OpsConfigInfo or the
// configuration of the server changes.
func followSettings(ctx context.Context, cmw configmap.Watcher, impl *controller.Impl, r *Reconciler) error {
	resync := func() { impl.GlobalResync(changeworkloadinformer.Get(ctx).Informer()) }
	store, err := settings.NewStore(opsconfiginfoinformer.Get(ctx), resync)
	if err != nil {
		return err
	}
	r.settings = store.Get
	r.serverConfigured = altershield.WatchConfigured(ctx, cmw, resync)
	return nil
}
