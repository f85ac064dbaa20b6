package changeworkload

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"
	revisioninformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/controllerrevision"
	replicasetinformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/replicaset"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	podinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/pod"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection/clients/dynamicclient"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	changeclient "github.com/breakwater-dev/breakwater/client/injection/client"
	changepodinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changepod"
	changeworkloadinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changeworkload"
	opsconfiginfoinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/opsconfiginfo"
	reconcilerchangeworkload "github.com/breakwater-dev/breakwater/client/injection/reconciler/change/v1alpha1/changeworkload"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/releasefinder"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer"
)

// gathering is the delay between a change of a pod or batch and the reconciliation
// of its release. It combines hundreds of changes a second, and each
// reconciliation reads all pods and batches.
const gathering = 500 * time.Millisecond

// NewController returns the controller of ChangeWorkloads.
func NewController(ctx context.Context, cmw configmap.Watcher, sender events.Sender) *controller.Impl {
	logger := logging.FromContext(ctx)
	changeWorkloads := changeworkloadinformer.Get(ctx).Informer()
	changePods := changepodinformer.Get(ctx).Informer()
	workloads := workloadinformer.Get(ctx)
	must := func(err error) {
		if err != nil {
			logger.Panicw("set up the controller of ChangeWorkloads", "error", err)
		}
	}
	revisions, err := releasefinder.New(ctx)
	must(err)
	must(releasefinder.Index(changeWorkloads))
	must(releasefinder.Index(changePods))

	r := &Reconciler{
		progressSlots: lru.New(maxProgressSlots),
		unjudged:      metrics.NewCounter(metrics.Meter(), "breakwater_orders_unjudged_total"),
		dynamic:       dynamicclient.Get(ctx),
		client:        changeclient.Get(ctx),
		workloads:     workloads,
		revisions:     revisions,
		namespaces:    namespaceinformer.Get(ctx).Lister(),
		lister:        changeworkloadinformer.Get(ctx).Lister(),
		changePods:    changePods.GetIndexer(),
		sender:        sender,
		wakeups:       resend.New(resend.Clock(ctx)),
		clock:         resend.Clock(ctx),
	}
	impl := reconcilerchangeworkload.NewImpl(ctx, r, func(*controller.Impl) controller.Options {
		// Other writers share the status: see statuspatch.
		return controller.Options{SkipStatusUpdates: true}
	})

	resync := func() { impl.GlobalResync(changeWorkloads) }
	store, err := settings.NewStore(opsconfiginfoinformer.Get(ctx), resync)
	must(err)
	r.settings = store.Get
	r.serverConfigured = altershield.WatchConfigured(ctx, cmw, resync)

	watch := func(in cache.SharedIndexInformer, h cache.ResourceEventHandler) {
		_, err := in.AddEventHandler(h)
		must(err)
	}
	watch(changeWorkloads, controller.HandleAll(impl.Enqueue))
	watch(changePods, controller.HandleAll(func(obj any) {
		c, ok := deleted(obj).(*v1alpha1.ChangePod)
		if !ok {
			return
		}
		if owner := metav1.GetControllerOfNoCopy(c); owner != nil {
			key := types.NamespacedName{Namespace: c.Namespace, Name: owner.Name}
			if urgent(c) {
				impl.EnqueueKey(key)
			} else {
				impl.EnqueueKeyAfter(key, gathering)
			}
		}
	}))
	// All releases of a workload, so that a replaced one ends.
	enqueueAll := func(uid types.UID) {
		own, err := releasefinder.Owned[*v1alpha1.ChangeWorkload](changeWorkloads.GetIndexer(), uid)
		if err != nil {
			logger.Errorw("find the ChangeWorkloads of a workload", "error", err)
		}
		for _, c := range own {
			impl.Enqueue(c)
		}
	}
	must(workloads.Handle(controller.HandleAll(func(obj any) {
		if w := workloadinformer.Deleted(obj); w != nil {
			enqueueAll(w.UID)
		}
	})))
	watch(replicasetinformer.Get(ctx).Informer(), controller.HandleAll(func(obj any) {
		if rs, ok := deleted(obj).(*appsv1.ReplicaSet); ok {
			if key, ok := releaseOf(rs); ok {
				impl.EnqueueKey(key)
			}
		}
	}))
	watch(revisioninformer.Get(ctx).Informer(), controller.HandleAll(func(obj any) {
		if r, ok := deleted(obj).(*appsv1.ControllerRevision); ok {
			if owner := metav1.GetControllerOfNoCopy(r); owner != nil {
				enqueueAll(owner.UID)
			}
		}
	}))
	enqueuePod := func(obj any) {
		p, ok := deleted(obj).(*corev1.Pod)
		if !ok {
			return
		}
		if of, release, known := revisions.ReleaseOfPod(p); known {
			key := types.NamespacedName{Namespace: p.Namespace, Name: v1alpha1.ChangeWorkloadName(of.Name, release.Version)}
			if r.podsMatter(key) {
				impl.EnqueueKeyAfter(key, gathering)
			}
		}
	}
	watch(podinformer.Get(ctx).Informer(), cache.ResourceEventHandlerFuncs{
		AddFunc: enqueuePod,
		UpdateFunc: func(before, after any) {
			if podMatters(before, after) {
				enqueuePod(after)
			}
		},
		DeleteFunc: enqueuePod,
	})
	watch(namespaceinformer.Get(ctx).Informer(), controller.HandleAll(func(obj any) {
		if ns, ok := deleted(obj).(*corev1.Namespace); ok {
			impl.FilteredGlobalResync(func(c any) bool {
				o, ok := c.(metav1.Object)
				return ok && o.GetNamespace() == ns.Name
			}, changeWorkloads)
		}
	}))
	return impl
}

// urgent says whether a batch may have failed or has a result of a person. A release
// is held without delay; progress may be delayed.
func urgent(c *v1alpha1.ChangePod) bool {
	return c.Status.VerdictOf(v1alpha1.StagePre).Outcome() == v1alpha1.OutcomeFail ||
		c.Status.VerdictOf(v1alpha1.StagePost).Outcome() == v1alpha1.OutcomeFail ||
		slices.ContainsFunc(c.Status.PodResults, func(r v1alpha1.PodSummary) bool {
			return r.Source == "" || v1alpha1.ParseVerdict(r.Verdict) == v1alpha1.OutcomeFail
		})
}

// releaseOf returns the key of the ChangeWorkload that a ReplicaSet belongs to.
func releaseOf(rs *appsv1.ReplicaSet) (types.NamespacedName, bool) {
	owner := metav1.GetControllerOf(rs)
	version := rs.Annotations[v1alpha1.VersionKey]
	if owner == nil || version == "" {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: rs.Namespace, Name: v1alpha1.ChangeWorkloadName(owner.Name, version)}, true
}

// podMatters says whether an update of a pod can change its release. Most updates are
// of containers. The label operate-finished changes nothing: the pod was Ready before.
func podMatters(before, after any) bool {
	a, okA := before.(*corev1.Pod)
	b, okB := after.(*corev1.Pod)
	if !okA || !okB {
		return false
	}
	sinceA, readyA := workload.PodReadySince(a)
	sinceB, readyB := workload.PodReadySince(b)
	return (a.DeletionTimestamp == nil) != (b.DeletionTimestamp == nil) ||
		a.Status.Phase != b.Status.Phase || readyA != readyB || !sinceA.Equal(sinceB)
}

// deleted returns the last known state of a deleted object.
func deleted(obj any) any {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		return tombstone.Obj
	}
	return obj
}
