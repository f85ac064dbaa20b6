// Package rollback rolls workloads back to a version that is known to be good:
// because pods of a release do not run, because a release failed its check, or because a
// person requested it. Of the components in the cluster, only the controller changes the pod spec
// of a template, and only in this package. Outside of the cluster, kubectl breakwater does, with
// the rights of its user. The webhook writes a release to the annotations of the template of a
// Knative Service.
//
// A rollback is one write: the template and its annotation, on
// condition that the workload's release is still the one of the decision. The
// webhook makes it a release of its own with the next attempt, which is judged
// like any other, but not by metrics.
package rollback

import (
	"context"
	"errors"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned"
	reconcilerchangeworkload "github.com/breakwater-dev/breakwater/client/injection/reconciler/change/v1alpha1/changeworkload"
	listers "github.com/breakwater-dev/breakwater/client/listers/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/liveworkload"
	"github.com/breakwater-dev/breakwater/reconciler/change/nodestate"
)

const (
	// fieldManager owns the template that a rollback wrote, so that a conflict
	// of a later server-side apply names it.
	fieldManager = "breakwater-rollback"
	// conflictRetry is the delay after a conflict: the workload has changed, or a
	// cache is stale.
	conflictRetry = time.Second
	// webhookRetry is the delay when the webhook does not answer, or has missed a template.
	webhookRetry = 10 * time.Second
)

// Workloads is the cache of workloads.
type Workloads interface {
	// Find returns the referenced workload, or nil.
	Find(namespace string, ref v1alpha1.WorkloadRef) *workload.Workload
}

// Reconciler rolls workloads back.
type Reconciler struct {
	kube    kubernetes.Interface
	dynamic dynamic.Interface
	client  versioned.Interface
	live    *liveworkload.Reader

	workloads Workloads
	nodes     nodestate.Nodes
	finder    Finder
	// pods has the index releasefinder.ByController.
	pods            cache.Indexer
	changeWorkloads listers.ChangeWorkloadLister
	// settings returns the settings in force.
	settings func() settings.Settings
	// rollbacks counts rollbacks, by reason and kind of workload.
	rollbacks metrics.Counter
	// reported remembers the impossible rollbacks that were reported.
	reported *lru.Cache
	clock    clock.PassiveClock
}

var _ reconcilerchangeworkload.Interface = (*Reconciler)(nil)

// ReconcileKind rolls the workload of a release back if that is due.
func (r *Reconciler) ReconcileKind(ctx context.Context, c *v1alpha1.ChangeWorkload) reconciler.Event {
	if c.DeletionTimestamp != nil {
		return nil
	}
	if optedIn, err := r.live.OptedIn(c.Namespace); err != nil || !optedIn {
		return err
	}
	w := r.workloads.Find(c.Namespace, c.Spec.WorkloadRef)
	if w == nil || w.DeletionTimestamp != nil {
		return nil
	}
	if err := r.recordStatus(ctx, c, w); err != nil {
		return again(err)
	}
	next, denied := r.deleteBlockingPods(ctx, c, w)
	in, err := r.gather(c, w)
	if err != nil {
		return errors.Join(err, denied)
	}
	decision := Decide(in)
	switch {
	case decision.Drop:
		err = r.changed(ctx, c, w, r.drop(ctx, w, decision.Message))
	case decision.LimitReached:
		r.reportOnce(ctx, c, w, decision.Message)
	case decision.Kind != "":
		var later time.Duration
		if later, err = r.rollBack(ctx, c, in, decision); later > 0 {
			next = later
		}
	}
	if err = errors.Join(err, denied); err != nil {
		return again(err)
	}
	if !decision.NextCheck.IsZero() {
		next = max(decision.NextCheck.Sub(in.Now), time.Millisecond)
	}
	if next > 0 {
		return controller.NewRequeueAfter(next)
	}
	return nil
}

// errChanged means that the workload changed between the read and the write.
var errChanged = errors.New("the workload has changed since it was read")

// changed returns errChanged instead of an Invalid error if the workload has changed since it was read: a test
// of the JSON patch failed. Otherwise a policy denies the write, which is tried again with backoff.
func (r *Reconciler) changed(ctx context.Context, c *v1alpha1.ChangeWorkload, w *workload.Workload, err error) error {
	if !apierrs.IsInvalid(err) {
		return err
	}
	current, readErr := r.live.Read(ctx, c)
	switch {
	case readErr != nil:
		return readErr
	case current == nil || current.ResourceVersion != w.ResourceVersion:
		return errChanged
	}
	return err
}

// again turns a conflict into a requeue.
func again(err error) error {
	if errors.Is(err, errChanged) || apierrs.IsConflict(err) || apierrs.IsNotFound(err) {
		return controller.NewRequeueAfter(conflictRetry)
	}
	return err
}

// gather reads the input of Decide from caches.
func (r *Reconciler) gather(c *v1alpha1.ChangeWorkload, w *workload.Workload) (Input, error) {
	in := Input{
		Now: r.clock.Now(), Settings: r.settings(),
		Release:           c.Release(),
		Phase:             c.Status.Phase,
		Reason:            c.Status.GetCondition(apis.ConditionSucceeded).GetReason(),
		Current:           at(w, c),
		ReplacesGradually: w.ReplacesGradually,
		PausedOrHeld:      w.PausedOrHeld(),
		Complete:          w.Complete,
		Last:              v1alpha1.RollbackOf(w.Annotations),
		Request:           v1alpha1.RollbackRequestOf(w.Annotations),
	}
	if w.Kind.UpdatesInPlace() {
		in.Began = c.CreationTimestamp.Time
	}
	_, asked := w.Annotations[v1alpha1.RollbackRequestAnnotation]
	in.RequestMalformed = asked && in.Request == nil
	if !in.Current || w.Complete {
		return in, nil
	}
	var err error
	in.Pods, err = r.ofRelease(w, in.Release)
	return in, err
}

// rollBack performs the rollback if there is a target. It returns the time until the next
// check; 0 if there is nothing to wait for.
func (r *Reconciler) rollBack(ctx context.Context, c *v1alpha1.ChangeWorkload, in Input, decision Decision) (time.Duration, error) {
	w, err := r.live.Read(ctx, c)
	if err != nil || w == nil {
		return 0, err
	}
	if !w.At(c) {
		return conflictRetry, nil // the cache is stale
	}
	state, err := r.stateOfTemplate(ctx, w)
	switch {
	case err != nil:
		return 0, err
	case state == templateMissed && decision.Kind == v1alpha1.RollbackRequested:
		return 0, r.changed(ctx, c, w.Workload, r.drop(ctx, w.Workload, newerTemplate))
	case state == templateMissed:
		r.reportOnce(ctx, c, w.Workload, decision.Message+"; "+newerTemplate)
		return webhookRetry, nil
	case state == templateUnknown:
		logging.FromContext(ctx).Warnw("the recorded version is not that of the template, and no revision shows why; the rollback is tried again later",
			"kind", w.Kind.Kind, "workload", w.Name, "recorded", w.Release.Version, "version", w.TemplateVersion)
		return webhookRetry, nil
	}
	candidates, err := r.candidates(ctx, c, in, decision, w)
	if err != nil {
		return 0, err
	}
	target, ok, why := Choose(decision, candidates)
	switch {
	case !ok && decision.Kind == v1alpha1.RollbackRequested:
		return 0, r.changed(ctx, c, w.Workload, r.drop(ctx, w.Workload, why))
	case !ok:
		r.reportOnce(ctx, c, w.Workload, decision.Message+"; "+why)
		if decision.Kind == v1alpha1.RollbackSelfHealing {
			return checkInterval(in.Settings.HealAfter), nil // the pods of the other version may become Ready
		}
		return 0, nil
	}
	answered, err := r.write(ctx, w, newRollback(in, decision, target), target)
	if err != nil {
		return 0, r.changed(ctx, c, w.Workload, err)
	}
	if !answered {
		logging.FromContext(ctx).Warnw("the webhook added no attempt; the rollback is tried again later", "version", target.Version)
		return webhookRetry, nil
	}
	r.reportRollback(ctx, w, decision, target)
	return 0, nil
}

// at reports whether the ChangeWorkload's release is the workload's current
// one.
func at(w *workload.Workload, c *v1alpha1.ChangeWorkload) bool {
	release, known := v1alpha1.ReleaseOf(w.Annotations)
	return known && release == c.Release()
}
