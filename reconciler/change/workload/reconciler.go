// Package workload creates a ChangeWorkload for every release of a workload of
// any kind.
//
// The webhook writes the release (version and attempt) on the workload. If it is
// missing, if the webhook missed a template, or if a manifest of an earlier release
// replaced the object, this reconciler requests a readmission. It writes nothing else to the workload. It creates one
// ChangeWorkload per version and attempt. An earlier attempt of the same version has a
// ChangeWorkload of the same name; it is deleted first. When a release succeeds, the
// ChangeWorkloads of the other releases are deleted as soon as their orders are closed and
// their events are accepted, or after 10 minutes. Until then the newest 20 of those that were replaced
// before they ended are kept. Those of an earlier workload of the same kind
// and name are deleted at once.
package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned"
	listers "github.com/breakwater-dev/breakwater/client/listers/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/deadline"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/releasetrace"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/workloadinformer"
)

// staleCacheRetry is the delay when a cache is stale, or an object of the name is
// still terminating.
const staleCacheRetry = time.Second

// revisionCounter counts revisions of workloads.
type revisionCounter interface {
	// CountRevisions returns how many revisions of a workload have the version, or are that of its
	// current template, and when the newest of those that have it in their annotations was created.
	CountRevisions(w *workload.Workload, version string) (n int, newest time.Time, err error)
}

// Reconciler creates and deletes ChangeWorkloads of workloads.
type Reconciler struct {
	reconciler.LeaderAwareFuncs

	dynamic         dynamic.Interface
	client          versioned.Interface
	workloads       *workloadinformer.Watch
	revisions       revisionCounter
	namespaces      corelisters.NamespaceLister
	changeWorkloads listers.ChangeWorkloadLister
	// settings returns the settings in force.
	settings func() settings.Settings
	cluster  *cluster
	recorder record.EventRecorder
	// readmissions schedules the repetition of readmissions that had no effect.
	readmissions *resend.Schedule
	// readmitted counts readmissions by kind, reason and effect.
	readmitted    metrics.Counter
	clock         clock.PassiveClock
	decidingSince resend.DecidingSince
}

var (
	_ controller.Reconciler  = (*Reconciler)(nil)
	_ reconciler.LeaderAware = (*Reconciler)(nil)
)

// Reconcile reconciles one workload. Kinds that are known only at run time have
// no generated reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, key string) error {
	w, err := r.workloads.Leading(r.IsLeaderFor, key)
	if err != nil || w == nil {
		return err // nil if the workload does not exist: the garbage collector deletes what it owned
	}
	facts, err := r.gather(w)
	if err != nil {
		return err
	}
	decision := Decide(facts)
	again, changed, err := r.readmit(ctx, w, decision.Readmission)
	if err != nil || changed {
		return err // the event of the changed object reconciles again
	}
	if err := r.apply(ctx, w, facts, decision); err != nil {
		return err
	}
	if again = deadline.ShorterWait(again, decision.RetryAfter); again > 0 {
		return controller.NewRequeueAfter(again)
	}
	return nil
}

// gather reads the input of Decide from caches.
func (r *Reconciler) gather(w *workload.Workload) (Input, error) {
	ns, err := r.namespaces.Get(w.Namespace)
	if apierrs.IsNotFound(err) {
		return Input{}, nil // it is not cached yet, which counts as not opted in
	} else if err != nil {
		return Input{}, fmt.Errorf("read namespace %s: %w", w.Namespace, err)
	}
	now := r.clock.Now()
	in := Input{
		OptedIn:  v1alpha1.OptedIn(ns),
		Deleting: w.DeletionTimestamp != nil,
		Kind:     w.Kind,

		OfKnativeService: w.OfKnativeService(),
		NoTemplate:       !w.HasTemplate(),

		StoppedBeforeReplicaSet: w.StoppedBeforeReplicaSet(),

		UID:   w.UID,
		Label: w.Labels[v1alpha1.VersionKey],
		Now:   now,
	}
	if !in.OptedIn {
		r.decidingSince.Pause(w.Namespace)
		return in, nil
	}
	in.DecidingSince = r.decidingSince.In(w.Namespace, now)
	if in.Deleting || in.OfKnativeService || in.NoTemplate {
		return in, nil
	}
	in.Release, in.Known = v1alpha1.ReleaseOf(w.Annotations)
	in.Known = in.Known && v1alpha1.IsTemplateVersion(in.Release.Version)
	if in.Computed, err = workload.Version(w.Kind, &w.Template); err != nil {
		return Input{}, controller.NewPermanentError(err)
	}
	if in.RevisionCount, in.NewestRevision, err = r.revisions.CountRevisions(w, in.Label); err != nil {
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
		switch ref := c.Spec.WorkloadRef; {
		case ref.UID == w.UID:
			in.Owned = append(in.Owned, c)
		case ref.Name == w.Name && w.Kind.Is(ref.APIVersion, ref.Kind) && c.Name != name:
			in.OfEarlierWorkloads = append(in.OfEarlierWorkloads, c)
		}
	}
	return in, nil
}

// apply executes the decision, except the readmission.
func (r *Reconciler) apply(ctx context.Context, w *workload.Workload, in Input, decision Decision) error {
	if decision.ReportNoTemplate {
		r.recorder.Eventf(w.Reference(), corev1.EventTypeWarning, v1alpha1.ReasonNoTemplate,
			"releases of this %s are not judged: %s", w.Kind.Kind, workload.WriteTemplate)
		return nil
	}
	if decision.Conflict {
		logging.FromContext(ctx).Errorw("a workload of another kind owns a ChangeWorkload of this name; this release is not judged",
			"changeWorkload", in.Named.Name, "kind", in.Named.Spec.WorkloadRef.Kind)
		return nil
	}
	obsolete := slices.Concat(decision.DeleteOlder, decision.DeleteOfEarlierWorkloads)
	if decision.DeleteOfSameName != nil {
		obsolete = append(obsolete, decision.DeleteOfSameName)
	}
	if len(obsolete) > 0 {
		if current, err := r.confirm(ctx, w, in); err != nil || !current {
			return err
		}
	}
	if decision.RemoveFinalizer != nil {
		return r.removeFinalizer(ctx, decision.RemoveFinalizer)
	}
	for _, c := range obsolete {
		if err := r.remove(ctx, c); err != nil {
			return err
		}
	}
	if decision.Create {
		return r.create(ctx, w, in.Release)
	}
	return nil
}

// confirm asks the API server whether the release of the decision is still
// current. A new leader's cache may be older than what its predecessor saw and
// created, and a deletion cannot be undone.
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
	return false, controller.NewRequeueAfter(staleCacheRetry)
}

// remove deletes a ChangeWorkload and then its ChangePods. In the other order, the
// reconciler of ChangeWorkloads would create the ChangePods again.
func (r *Reconciler) remove(ctx context.Context, c *v1alpha1.ChangeWorkload) error {
	err := r.client.AppV1alpha1().ChangeWorkloads(c.Namespace).Delete(ctx, c.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &c.UID}})
	if apierrs.IsNotFound(err) || apierrs.IsConflict(err) {
		return nil // already deleted, or another object has the name now
	} else if err != nil {
		return fmt.Errorf("delete ChangeWorkload %s/%s: %w", c.Namespace, c.Name, err)
	}
	logging.FromContext(ctx).Infow("deleted the ChangeWorkload of an earlier release",
		"changeWorkload", c.Name, "attempt", c.Spec.Attempt)
	// The garbage collector deletes the ChangePods, too, but one by one. The ChangePods of the
	// next attempt have the same names. After an error, each name that is still taken costs the
	// next attempt some requests.
	err = r.client.AppV1alpha1().ChangePods(c.Namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{
		LabelSelector: labels.Set{
			v1alpha1.VersionKey: c.Labels[v1alpha1.VersionKey], v1alpha1.DeploymentNameLabel: c.Labels[v1alpha1.DeploymentNameLabel],
		}.String(),
	})
	if err != nil {
		logging.FromContext(ctx).Warnw("could not delete the ChangePods of a deleted ChangeWorkload", "changeWorkload", c.Name, "error", err)
	}
	return nil
}

// removeFinalizer removes the finalizer of a deleted ChangeWorkload.
func (r *Reconciler) removeFinalizer(ctx context.Context, c *v1alpha1.ChangeWorkload) error {
	others := slices.DeleteFunc(slices.Clone(c.Finalizers), func(f string) bool { return f == v1alpha1.OrderFinalizer })
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": others, "resourceVersion": c.ResourceVersion}})
	if err != nil {
		return controller.NewPermanentError(fmt.Errorf("encode the finalizers of %s: %w", c.Name, err))
	}
	_, err = r.client.AppV1alpha1().ChangeWorkloads(c.Namespace).Patch(ctx, c.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	switch {
	case apierrs.IsConflict(err):
		return controller.NewRequeueAfter(staleCacheRetry)
	case err != nil && !apierrs.IsNotFound(err):
		return fmt.Errorf("write the finalizers of ChangeWorkload %s/%s: %w", c.Namespace, c.Name, err)
	}
	logging.FromContext(ctx).Warnw("the order of an earlier attempt was not closed in time and may stay open at the server", "changeWorkload", c.Name)
	return nil
}

func (r *Reconciler) create(ctx context.Context, w *workload.Workload, release v1alpha1.Release) error {
	name, err := r.cluster.name()
	if err != nil {
		return err
	}
	c := build(w, release, name, r.settings(), r.clock.Now())
	created := releasetrace.Begin(ctx, c)
	_, err = r.client.AppV1alpha1().ChangeWorkloads(c.Namespace).Create(ctx, c, metav1.CreateOptions{FieldManager: fieldManager})
	switch {
	case apierrs.IsAlreadyExists(err):
		// The existing object was created by this reconciler and is not in the cache
		// yet, or it is an old one that is terminating.
		return controller.NewRequeueAfter(staleCacheRetry)
	case apierrs.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	case err != nil:
		return fmt.Errorf("create ChangeWorkload %s/%s: %w", c.Namespace, c.Name, err)
	}
	created()
	logging.FromContext(ctx).Infow("created the ChangeWorkload of a release", "changeWorkload", c.Name, "attempt", release.Attempt, "baseline", release.IsBaseline())
	return nil
}
