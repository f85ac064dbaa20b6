package changeworkload

import (
	"context"
	"maps"
	"slices"

	"go.uber.org/zap"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	revisioninformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/controllerrevision"
	replicasetinformer "knative.dev/pkg/client/injection/kube/informers/apps/v1/replicaset"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	nodeinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/node"
	podinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/pod"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	changepodinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changepod"
	changeworkloadinformer "github.com/breakwater-dev/breakwater/client/injection/informers/change/v1alpha1/changeworkload"
	"github.com/breakwater-dev/breakwater/internal/wiring"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/nodestate"
	"github.com/breakwater-dev/breakwater/reconciler/change/releasefinder"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer"
)

// watch enqueues a ChangeWorkload when an object changes that its status is
// derived from.
func watch(ctx context.Context, must wiring.Must, impl *controller.Impl, r *Reconciler) {
	e := &enqueuer{impl: impl, changeWorkloads: changeworkloadinformer.Get(ctx).Informer(), reconciler: r, logger: logging.FromContext(ctx)}
	must.Watch(e.changeWorkloads, cache.ResourceEventHandlerFuncs{
		AddFunc:    impl.Enqueue,
		UpdateFunc: controller.PassNew(impl.Enqueue),
		DeleteFunc: func(obj any) {
			if c, ok := wiring.Object[*v1alpha1.ChangeWorkload](obj); ok {
				r.forget(c)
			}
			impl.Enqueue(obj)
		},
	})
	must.Watch(changepodinformer.Get(ctx).Informer(), controller.HandleAll(e.changePod))
	must(workloadinformer.Get(ctx).Handle(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { e.workload(obj, impl.Enqueue) },
		UpdateFunc: func(before, after any) {
			if progressOnly(before, after) {
				e.workload(after, e.enqueueLater)
			} else {
				e.workload(after, impl.Enqueue)
			}
		},
		DeleteFunc: func(obj any) { e.workload(obj, impl.Enqueue) },
	}))
	must.Watch(replicasetinformer.Get(ctx).Informer(), controller.HandleAll(e.replicaSet))
	must.Watch(revisioninformer.Get(ctx).Informer(), controller.HandleAll(e.controllerRevision))
	must.Watch(podinformer.Get(ctx).Informer(), cache.ResourceEventHandlerFuncs{
		AddFunc: e.pod,
		UpdateFunc: func(before, after any) {
			if podChangeMatters(before, after) {
				e.pod(after)
			}
		},
		DeleteFunc: e.pod,
	})
	must.Watch(nodeinformer.Get(ctx).Informer(), cache.ResourceEventHandlerFuncs{UpdateFunc: e.node})
	must.Watch(namespaceinformer.Get(ctx).Informer(), controller.HandleAll(e.namespace))
}

// enqueuer enqueues the ChangeWorkloads that an object affects.
type enqueuer struct {
	impl            *controller.Impl
	changeWorkloads cache.SharedIndexInformer
	reconciler      *Reconciler
	logger          *zap.SugaredLogger
}

func (e *enqueuer) changePod(obj any) {
	c, ok := wiring.Object[*v1alpha1.ChangePod](obj)
	if !ok {
		return
	}
	owner := metav1.GetControllerOfNoCopy(c)
	if owner == nil {
		return
	}
	key := types.NamespacedName{Namespace: c.Namespace, Name: owner.Name}
	if urgent(c) {
		e.impl.EnqueueKey(key)
	} else {
		e.impl.EnqueueKeyAfter(key, combineDelay)
	}
}

func (e *enqueuer) workload(obj any, enqueue func(any)) {
	w, ok := wiring.Object[*workload.Workload](obj)
	if !ok {
		return
	}
	e.versionsOf(w.UID, enqueue)
	if service, isPart := e.reconciler.workloads.ServiceOf(w); isPart {
		e.versionsOf(service.UID, e.enqueueLater)
	}
}

// enqueueLater enqueues an object together with other changes of its pods and batches.
func (e *enqueuer) enqueueLater(obj any) { e.impl.EnqueueAfter(obj, combineDelay) }

// progressOnly reports whether only the status of a workload changed, and its rollout was not
// completed. During a rollout the status changes with every pod.
func progressOnly(before, after any) bool {
	a, okA := before.(*workload.Workload)
	b, okB := after.(*workload.Workload)
	return okA && okB && a.UID == b.UID && a.Generation == b.Generation && a.Complete == b.Complete && a.InProgress == b.InProgress &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) && maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations)
}

func (e *enqueuer) replicaSet(obj any) {
	if rs, ok := wiring.Object[*appsv1.ReplicaSet](obj); ok {
		of, owned := e.reconciler.revisions.WorkloadOf(rs)
		if version := rs.Annotations[v1alpha1.VersionKey]; owned && version != "" {
			e.impl.EnqueueKeyAfter(types.NamespacedName{Namespace: rs.Namespace, Name: v1alpha1.ChangeWorkloadName(of.Name, version)}, combineDelay)
		}
	}
}

func (e *enqueuer) controllerRevision(obj any) {
	if r, ok := wiring.Object[*appsv1.ControllerRevision](obj); ok {
		if owner := metav1.GetControllerOfNoCopy(r); owner != nil {
			e.versionsOf(owner.UID, e.impl.Enqueue)
		}
	}
}

func (e *enqueuer) pod(obj any) {
	p, ok := wiring.Object[*corev1.Pod](obj)
	if !ok {
		return
	}
	if of, release, known := e.reconciler.revisions.ReleaseOfPod(p); known {
		key := types.NamespacedName{Namespace: p.Namespace, Name: v1alpha1.ChangeWorkloadName(of.Name, release.Version)}
		if e.reconciler.dependsOnPods(key) {
			e.impl.EnqueueKeyAfter(key, combineDelay)
		}
	}
}

func (e *enqueuer) namespace(obj any) {
	if ns, ok := wiring.Object[*corev1.Namespace](obj); ok {
		e.impl.FilteredGlobalResync(func(c any) bool {
			o, ok := c.(metav1.Object)
			return ok && o.GetNamespace() == ns.Name
		}, e.changeWorkloads)
	}
}

// node enqueues the releases of DaemonSets when a node is no longer Ready or becomes Ready again, because
// the pods of the node may not change then.
func (e *enqueuer) node(before, after any) {
	a, okA := before.(*corev1.Node)
	b, okB := after.(*corev1.Node)
	if !okA || !okB || nodestate.Ready(a) == nodestate.Ready(b) {
		return
	}
	e.impl.FilteredGlobalResync(func(obj any) bool {
		c, ok := obj.(*v1alpha1.ChangeWorkload)
		return ok && workload.DaemonSet.Is(c.Spec.WorkloadRef.APIVersion, c.Spec.WorkloadRef.Kind) && c.Status.Phase != v1alpha1.ReleaseSuccess
	}, e.changeWorkloads)
}

// versionsOf enqueues the ChangeWorkloads of all versions of a workload: a new
// version supersedes the others.
func (e *enqueuer) versionsOf(uid types.UID, enqueue func(any)) {
	all, err := releasefinder.Owned[*v1alpha1.ChangeWorkload](e.changeWorkloads.GetIndexer(), uid)
	if err != nil {
		e.logger.Errorw("could not find the ChangeWorkloads of a workload", "error", err)
	}
	for _, c := range all {
		enqueue(c)
	}
}

// urgent reports whether a batch may have failed or has a result of a person. A release
// is held without delay; progress may be delayed.
func urgent(c *v1alpha1.ChangePod) bool {
	return c.Status.VerdictOf(v1alpha1.StagePre).Outcome() == v1alpha1.OutcomeFail ||
		c.Status.VerdictOf(v1alpha1.StagePost).Outcome() == v1alpha1.OutcomeFail ||
		c.Status.FailOfJudge() != nil ||
		slices.ContainsFunc(c.Status.PodResults, func(r v1alpha1.PodSummary) bool {
			return r.Source == "" || v1alpha1.ParseVerdict(r.Verdict) == v1alpha1.OutcomeFail
		})
}

// podChangeMatters reports whether an update of a pod can change its release. Most updates are
// of containers. The label operate-finished changes nothing: the pod was Ready before. The
// label with the revision changes when a pod is updated in place. A cached pod has only the
// containers whose image was changed (see the transform of the informer).
func podChangeMatters(before, after any) bool {
	a, okA := before.(*corev1.Pod)
	b, okB := after.(*corev1.Pod)
	if !okA || !okB {
		return false
	}
	sinceA, readyA := workload.PodReadySince(a)
	sinceB, readyB := workload.PodReadySince(b)
	return (a.DeletionTimestamp == nil) != (b.DeletionTimestamp == nil) ||
		a.Labels[appsv1.ControllerRevisionHashLabelKey] != b.Labels[appsv1.ControllerRevisionHashLabelKey] ||
		!slices.EqualFunc(a.Spec.Containers, b.Spec.Containers, sameImage) ||
		!slices.EqualFunc(a.Spec.InitContainers, b.Spec.InitContainers, sameImage) ||
		a.Status.Phase != b.Status.Phase || readyA != readyB || !sinceA.Equal(sinceB)
}

func sameImage(a, b corev1.Container) bool { return a.Name == b.Name && a.Image == b.Image }
