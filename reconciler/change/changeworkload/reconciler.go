// Package changeworkload reconciles ChangeWorkloads: one release of a workload
// each. The states are
//
//	"" -> Running <-> TimeOutPreThreshold -> Success | Suspend | Failed
//	Suspend -> Running | Success when a person overrules the fail
//	Failed -> Running | Success when a release that timed out makes progress
//	Failed -> Suspend when a pod or the order of the current release fails
//	Success -> Suspend when a later verdict or a person fails a pod, or the order fails
//	Success -> Failed when that happens after a newer release replaced this one
//	Success -> Running when a release that succeeded without pods has pods
//
// It claims finished pods into ChangePods, counts their outcomes, and suspends the
// workload on the first fail, unless isBlockingUp is off or shadow is on. A release
// that is not the workload's current one never changes the workload.
package changeworkload

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned"
	reconcilerchangeworkload "github.com/breakwater-dev/breakwater/client/injection/reconciler/change/v1alpha1/changeworkload"
	changelisters "github.com/breakwater-dev/breakwater/client/listers/change/v1alpha1"
	judgelisters "github.com/breakwater-dev/breakwater/client/listers/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/deadline"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/releasetrace"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/callqueue"
	"github.com/breakwater-dev/breakwater/reconciler/change/nodestate"
	"github.com/breakwater-dev/breakwater/reconciler/change/releasefinder"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer"
)

// fieldManager owns what this package writes, except on workloads.
const fieldManager = "controller"

// holdManager owns what this package writes on workloads: a later server-side apply that sets the
// field of a hold gets a conflict that names it.
const holdManager = "breakwater-hold"

// conflictRetry is the delay after a conflict on the workload. Usually the event
// of the newer workload comes earlier.
const conflictRetry = time.Second

// staleCacheRetry is the delay after a write that failed because the cache was stale.
const staleCacheRetry = 50 * time.Millisecond

// Reconciler reconciles ChangeWorkloads.
type Reconciler struct {
	dynamic    dynamic.Interface
	client     versioned.Interface
	kube       kubernetes.Interface
	workloads  *workloadinformer.Watch
	revisions  *releasefinder.Finder
	namespaces corelisters.NamespaceLister
	lister     changelisters.ChangeWorkloadLister
	// metricChecks has the MetricChecks of all namespaces.
	metricChecks judgelisters.MetricCheckLister
	// changePods has the index of releasefinder.Index.
	changePods cache.Indexer
	// pods has the index of releasefinder.Index.
	pods  cache.Indexer
	nodes nodestate.Nodes
	// settings returns the current settings.
	settings func() settings.Settings
	// serverConfigured reports whether an AlterShield server is configured.
	serverConfigured func() bool
	sender           events.ConfirmingSender
	signer           signer
	wakeups          *resend.Schedule
	// probationWakeUps are the wake-ups of function judge during probation.
	probationWakeUps *resend.Schedule
	calls            *callqueue.Queue
	// enqueue enqueues a ChangeWorkload, enqueueAfter after a time.
	enqueue      func(types.NamespacedName)
	enqueueAfter func(types.NamespacedName, time.Duration)
	// delivered has the ids of announcements that the Broker has accepted.
	delivered *lru.Cache
	// eventTimes has the time of the last progress event, by UID.
	eventTimes *lru.Cache
	// unjudged counts unjudged orders.
	unjudged metrics.Counter
	clock    clock.PassiveClock
	// decidingSince is the time of the first decision of this process, by namespace.
	decidingSince resend.DecidingSince
}

var _ reconcilerchangeworkload.Interface = (*Reconciler)(nil)

// ReconcileKind reconciles one ChangeWorkload.
func (r *Reconciler) ReconcileKind(ctx context.Context, c *v1alpha1.ChangeWorkload) reconciler.Event {
	ctx = releasetrace.OfRelease(ctx, c) // of the events
	in, w, err := r.gather(c)
	if err != nil || w == nil {
		return err
	}
	d := Decide(in)
	if d.Action == ActionSuspend || d.Action == ActionMoveTraffic {
		if in.Revisions.Good, err = r.readGoodRevision(ctx, w, c); err != nil {
			return err
		}
		d = Decide(in)
	}
	if changed, err := r.addFinalizer(ctx, in, d); changed || err != nil {
		return retried(err) // the written object is reconciled
	}

	// The hold comes first, because it stops harm. The decision depends on the workload, so a hold
	// that failed is tried again whatever the status is.
	if d.ActionError = r.act(ctx, in, w, d.Action); isStale(d.ActionError) {
		return controller.NewRequeueAfter(conflictRetry)
	}
	createErr := r.createBatches(ctx, in, w, d.Batches)
	if createErr != nil {
		d.Batches = nil // no event of a new batch will reconcile again
	}
	// Verdicts and the order do not wait for a workload that cannot be changed, or for batches that
	// cannot be created.
	again, err := r.writeAndSend(ctx, in, d, w)
	if err != nil {
		return errors.Join(err, d.ActionError, createErr)
	}
	if isStale(createErr) {
		again, createErr = deadline.ShorterWait(again, staleCacheRetry), nil
	}
	if err := errors.Join(d.ActionError, createErr); err != nil {
		if again > 0 {
			r.enqueueAfter(keyOf(c), again) // the backoff of the error may be longer
		}
		return err
	}
	if again > 0 {
		return controller.NewRequeueAfter(again)
	}
	return nil
}

// writeAndSend writes and sends what follows from a decision. It returns the time until the next
// decision, or 0 if an event triggers that.
func (r *Reconciler) writeAndSend(ctx context.Context, in Input, d Decision, w *workload.Workload) (time.Duration, error) {
	again, err := r.writeStatus(ctx, in, d, w)
	if apierrs.IsConflict(err) || apierrs.IsNotFound(err) {
		return staleCacheRetry, nil
	} else if err != nil {
		return 0, err
	}
	for _, step := range []func() (time.Duration, error){
		func() (time.Duration, error) { return r.announce(ctx, in.ChangeWorkload) },
		func() (time.Duration, error) { return r.drainInbox(ctx, in) },
		func() (time.Duration, error) { return r.wakeSubmit(ctx, in, d) },
		func() (time.Duration, error) { return r.wakeJudge(ctx, in, d) },
		func() (time.Duration, error) { return r.sendProgress(ctx, in, d) },
		func() (time.Duration, error) { return 0, r.removeFinalizer(ctx, in, d) },
	} {
		next, err := step()
		if err != nil {
			return 0, err
		}
		again = deadline.ShorterWait(again, next)
	}
	if !d.Deadline.IsZero() {
		again = deadline.ShorterWait(again, deadline.WaitUntil(d.Deadline, in.Now))
	}
	return again, nil
}

// gather reads the input of the decision. A nil workload means that there is
// nothing to do: the workload was deleted (the garbage collector deletes the
// ChangeWorkload), another one has its name, its kind is not watched any more,
// or its namespace is not opted in.
func (r *Reconciler) gather(c *v1alpha1.ChangeWorkload) (Input, *workload.Workload, error) {
	ns, err := r.namespaces.Get(c.Namespace)
	if apierrs.IsNotFound(err) || (err == nil && !v1alpha1.OptedIn(ns)) {
		r.forget(c) // no call is made; an opt-in reconciles again
		if err == nil {
			r.decidingSince.Pause(c.Namespace)
		}
		return Input{}, nil, nil
	} else if err != nil {
		return Input{}, nil, fmt.Errorf("read namespace %s: %w", c.Namespace, err)
	}
	w := r.workloads.Find(c.Namespace, c.Spec.WorkloadRef)
	if w == nil || w.DeletionTimestamp != nil {
		return Input{}, nil, nil
	}
	pods, err := r.revisions.Pods(w, c.Release())
	if err != nil {
		return Input{}, nil, err
	}
	sets, err := r.revisions.ReplicaSets(w, c.Release())
	if err != nil {
		return Input{}, nil, err
	}
	changePods, err := releasefinder.Owned[*v1alpha1.ChangePod](r.changePods, c.UID)
	if err != nil {
		return Input{}, nil, err
	}
	own := podsOf(pods, c, w)
	notReady, err := r.markOnNotReadyNodes(w, own)
	if err != nil {
		return Input{}, nil, err
	}
	var revisions Revisions
	var latest []string
	if w.Kind.Revisions == workload.KnativeRevisions {
		deployments := r.workloads.Deployments(w)
		revisions.Own = revisionsOf(c.Release(), deployments)
		latest = replicaSetsOf(w.LatestRevision, deployments, sets)
	}
	now, s, woken := r.clock.Now(), r.settings(), time.Time{}
	decidingSince := r.decidingSince.In(c.Namespace, now)
	if step := c.Status.OrderStep; step != nil {
		woken = callqueue.WokenSince(r.wakeups, callID(c, step.Name), s.SubmitTimeout, decidingSince)
	}
	in := Input{
		Now: now, StepWokenSince: woken, DecidingSince: decidingSince, Settings: s, ServerConfigured: r.serverConfigured(),
		ChangeWorkload: c, Workload: workloadOf(w, notReady), ExcludedNodes: notReady, Revisions: revisions, LatestReplicaSets: latest,
		JudgeBeforeTraffic: judgesBeforeTraffic(w, ns), Pods: own, ChangePods: changePods,
		Drift: driftOf(&w.Template.Spec, sets, pods), DeliveredAnnouncements: r.deliveredAnnouncements(c),
	}
	return withoutLater(in), w, nil
}

// dependsOnPods reports whether the status of a release can change with its pods.
// The pods of a superseded release are deleted, hundreds in a second.
func (r *Reconciler) dependsOnPods(release types.NamespacedName) bool {
	c, err := r.lister.ChangeWorkloads(release.Namespace).Get(release.Name)
	if err != nil {
		return true // it is not cached yet, or was deleted, and then nothing is done
	}
	w := r.workloads.Find(c.Namespace, c.Spec.WorkloadRef)
	return w == nil || !replacedSuccess(Input{ChangeWorkload: c, Workload: workloadOf(w, workload.ExcludedNodes{})})
}

// act changes the workload.
func (r *Reconciler) act(ctx context.Context, in Input, w *workload.Workload, action Action) error {
	if action == ActionNone {
		return nil
	}
	if err := r.actIfConfirmed(ctx, in, w, action); err != nil {
		return err
	}
	logging.FromContext(ctx).Infow("Changed the workload", "action", action)
	recordAction(ctx, w, in.ChangeWorkload, action)
	return nil
}

// writeStatus writes the derived status and publishes the change. It returns the
// delay of a write that has to wait.
func (r *Reconciler) writeStatus(ctx context.Context, in Input, d Decision, w *workload.Workload) (time.Duration, error) {
	next, kind := nextStatus(in, d)
	if kind == progress && len(d.Batches) > 0 {
		return 0, nil // the events of the new ChangePods reconcile again
	}
	if wait, write := writeDelay(kind, in); !write || wait > 0 {
		return wait, nil
	}
	_, err := statuspatch.Write(ctx, r.client.AppV1alpha1().ChangeWorkloads(next.Namespace), fieldManager,
		in.ChangeWorkload, next, statuspatch.ChangeWorkloadDerived)
	if err != nil {
		return 0, err
	}
	releasetrace.RolloutIfEnded(ctx, in.ChangeWorkload, next, in.Now)
	return 0, r.publish(ctx, in, next, w, d)
}

// isStale reports whether a write failed because the cache was stale: the workload
// has another version by now, or the ChangePod exists.
func isStale(err error) bool {
	return errors.Is(err, errStaleCache) || apierrs.IsConflict(err) || apierrs.IsAlreadyExists(err) || apierrs.IsNotFound(err)
}
