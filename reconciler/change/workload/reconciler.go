// Package workload gives every release of a workload its ChangeWorkload,
// whatever the workload's kind.
//
// Which release a workload is at, the webhook has written on it: version and
// attempt. This reconciler asks for that where it is missing (a touch: an
// update that changes nothing passes admission again), creates one
// ChangeWorkload a version and attempt, and deletes those of earlier releases
// once the current one is a Success. It never writes to the workload itself.
package workload

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned"
	listers "github.com/breakwater-dev/breakwater/client/listers/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer"
)

// behind is how long to wait where a cache has not yet seen what the API
// server has, or an object of the name is still being deleted.
const behind = time.Second

// carriers knows the revisions of workloads.
type carriers interface {
	// Carriers is how many revisions of a workload carry a version.
	Carriers(w *workload.Workload, version string) (int, error)
}

// Reconciler keeps ChangeWorkloads in step with workloads.
type Reconciler struct {
	reconciler.LeaderAwareFuncs

	dynamic         dynamic.Interface
	client          versioned.Interface
	workloads       *workloadinformer.Watch
	revisions       carriers
	namespaces      corelisters.NamespaceLister
	changeWorkloads listers.ChangeWorkloadLister
	// settings returns the settings in force.
	settings func() settings.Settings
	cluster  *cluster
	// touches says when a touch without effect is due again.
	touches *resend.Schedule
	// touched counts touches by kind, reason and effect.
	touched metric.Int64Counter
	clock   clock.PassiveClock
	up      resend.Since
}

var (
	_ controller.Reconciler  = (*Reconciler)(nil)
	_ reconciler.LeaderAware = (*Reconciler)(nil)
)

// Reconcile decides about one workload and does what was decided. There is no
// generated reconciler for a kind that is only known when the process runs.
func (r *Reconciler) Reconcile(ctx context.Context, key string) error {
	in, gk, name, ok := parseKey(key)
	if !ok {
		return controller.NewPermanentError(fmt.Errorf("the key %q is not namespace/kind:name", key))
	}
	if !r.IsLeaderFor(in) {
		return controller.NewSkipKey(key)
	}
	w := r.workloads.Get(gk, in.Namespace, name)
	if w == nil {
		return nil // gone, and the garbage collector takes what it owned
	}
	facts, err := r.gather(w)
	if err != nil {
		return err
	}
	decision := Decide(facts)
	again, changed, err := r.touch(ctx, w, decision.Touch)
	if err != nil || changed {
		return err // the changed object is on its way to the cache
	}
	if err := r.apply(ctx, w, facts, decision); err != nil {
		return err
	}
	if again = resend.Sooner(again, decision.Again); again > 0 {
		return controller.NewRequeueAfter(again)
	}
	return nil
}

// gather reads what Decide wants, from caches only.
func (r *Reconciler) gather(w *workload.Workload) (Input, error) {
	ns, err := r.namespaces.Get(w.Namespace)
	if apierrs.IsNotFound(err) {
		return Input{}, nil // not opted in, as far as is known
	} else if err != nil {
		return Input{}, fmt.Errorf("read namespace %s: %w", w.Namespace, err)
	}
	now := r.clock.Now()
	in := Input{
		OptedIn:  v1alpha1.OptedIn(ns),
		Deleting: w.DeletionTimestamp != nil,
		Kind:     w.Kind,
		UID:      w.UID,
		Label:    w.Labels[v1alpha1.VersionKey],
		Now:      now,
		Up:       r.up.First(now),
	}
	if !in.OptedIn || in.Deleting {
		return in, nil
	}
	in.Release, in.Known = v1alpha1.ReleaseOf(w.Annotations)
	in.Known = in.Known && v1alpha1.IsTemplateVersion(in.Release.Version)
	if in.Computed, err = workload.Version(w.Kind, &w.Template); err != nil {
		return Input{}, controller.NewPermanentError(err)
	}
	if in.Carriers, err = r.revisions.Carriers(w, in.Label); err != nil {
		return Input{}, err
	}
	all, err := r.changeWorkloads.ChangeWorkloads(w.Namespace).List(labels.Everything())
	if err != nil {
		return Input{}, fmt.Errorf("list ChangeWorkloads: %w", err)
	}
	name := v1alpha1.ChangeWorkloadName(w.Name, in.Release.Version)
	for _, c := range all {
		if c.Name == name {
			in.Named = c
		}
		if c.Spec.WorkloadRef.UID == w.UID {
			in.Owned = append(in.Owned, c)
		}
	}
	return in, nil
}

// apply does what was decided, but for the touch.
func (r *Reconciler) apply(ctx context.Context, w *workload.Workload, in Input, decision Decision) error {
	if decision.Conflict {
		logging.FromContext(ctx).Errorw("a workload of another kind has a ChangeWorkload of this name, so this release is not judged",
			"changeWorkload", in.Named.Name, "kind", in.Named.Spec.WorkloadRef.Kind)
		return nil
	}
	doomed := decision.DeleteHistory
	if decision.DeleteStale != nil {
		doomed = append(doomed, decision.DeleteStale)
	}
	if len(doomed) > 0 {
		if current, err := r.confirm(ctx, w, in); err != nil || !current {
			return err
		}
	}
	for _, c := range doomed {
		if err := r.remove(ctx, c); err != nil {
			return err
		}
	}
	if decision.Create {
		return r.create(ctx, w, in.Release)
	}
	return nil
}

// confirm asks the API server whether the workload is still at the release
// that was decided on. A new leader's cache may be behind what the leader
// before it has seen and created, and what is deleted is gone.
func (r *Reconciler) confirm(ctx context.Context, w *workload.Workload, in Input) (bool, error) {
	live, err := r.dynamic.Resource(w.Kind.GroupVersionResource()).Namespace(w.Namespace).Get(ctx, w.Name, metav1.GetOptions{})
	if apierrs.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("confirm the release of %s %s/%s: %w", w.Kind.Kind, w.Namespace, w.Name, err)
	}
	release, known := v1alpha1.ReleaseOf(live.GetAnnotations())
	if live.GetUID() == in.UID && known && release == in.Release {
		return true, nil
	}
	return false, controller.NewRequeueAfter(behind)
}

func (r *Reconciler) remove(ctx context.Context, c *v1alpha1.ChangeWorkload) error {
	err := r.client.AppV1alpha1().ChangeWorkloads(c.Namespace).Delete(ctx, c.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &c.UID}})
	if apierrs.IsNotFound(err) || apierrs.IsConflict(err) {
		return nil // gone already, or another object has the name now
	} else if err != nil {
		return fmt.Errorf("delete ChangeWorkload %s/%s: %w", c.Namespace, c.Name, err)
	}
	logging.FromContext(ctx).Infow("deleted the ChangeWorkload of an earlier release",
		"changeWorkload", c.Name, "attempt", c.Spec.Attempt)
	return nil
}

func (r *Reconciler) create(ctx context.Context, w *workload.Workload, release v1alpha1.Release) error {
	name, err := r.cluster.name()
	if err != nil {
		return err
	}
	c := build(w, release, name, r.settings(), r.clock.Now())
	_, err = r.client.AppV1alpha1().ChangeWorkloads(c.Namespace).Create(ctx, c, metav1.CreateOptions{FieldManager: fieldManager})
	switch {
	case apierrs.IsAlreadyExists(err):
		// Ours, which the cache has not seen, or an old one on its way out.
		return controller.NewRequeueAfter(behind)
	case apierrs.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	case err != nil:
		return fmt.Errorf("create ChangeWorkload %s/%s: %w", c.Namespace, c.Name, err)
	}
	logging.FromContext(ctx).Infow("a release begins", "changeWorkload", c.Name, "attempt", release.Attempt)
	return nil
}
