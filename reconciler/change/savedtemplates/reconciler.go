// Package savedtemplates saves the pod templates of versions that succeeded as
// ControllerRevisions, for rollbacks. OpsConfigInfo history-limit sets their
// number, independent of a workload's revisionHistoryLimit.
package savedtemplates

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned"
	reconcilerchangeworkload "github.com/breakwater-dev/breakwater/client/injection/reconciler/change/v1alpha1/changeworkload"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/liveworkload"
)

const (
	// fieldManager owns what this reconciler writes.
	fieldManager = "breakwater-history"
	// baselineRetry is the interval of checking a baseline that is not
	// available.
	baselineRetry = time.Minute
	// nameTakenRetry is the delay when the name belongs to an earlier workload's
	// object, which the garbage collector will delete, or which was deleted just now.
	nameTakenRetry = 5 * time.Second
	// staleCacheRetry is the delay after a conflict that shows a stale cache.
	staleCacheRetry = time.Second
)

// Reconciler saves and deletes templates.
type Reconciler struct {
	kube   kubernetes.Interface
	client versioned.Interface
	live   *liveworkload.Reader
	// cached returns the workload of the reference in the cache, which has no template; nil
	// if it is not cached.
	cached func(namespace string, ref v1alpha1.WorkloadRef) *workload.Workload
	// settings returns the settings in force.
	settings func() settings.Settings
	// changes counts templates that were saved, pruned or deleted.
	changes metrics.Counter
}

var _ reconcilerchangeworkload.Interface = (*Reconciler)(nil)

// ReconcileKind saves or deletes the template of one release.
func (r *Reconciler) ReconcileKind(ctx context.Context, c *v1alpha1.ChangeWorkload) reconciler.Event {
	if c.DeletionTimestamp != nil || !due(c) {
		return nil
	}
	if optedIn, err := r.live.OptedIn(c.Namespace); err != nil || !optedIn {
		return err
	}
	if r.baselineUnavailable(c) {
		return controller.NewRequeueAfter(baselineRetry)
	}
	w, err := r.live.Read(ctx, c)
	if err != nil || w == nil {
		return err
	}
	decision := Decide(gather(c, w))
	switch decision {
	case Save:
		err = r.save(ctx, c, w)
	case Delete:
		err = r.deleteFailed(ctx, c, w)
	case Skip:
		controller.GetEventRecorder(ctx).Eventf(c, corev1.EventTypeWarning, v1alpha1.ReasonSavedTemplatesSelected,
			"the selector of %s %s has only NotIn and DoesNotExist, so it would select the ControllerRevisions in which templates are saved "+
				"(label %s). Therefore the template of this version is not saved. Of the rollbacks, only self-healing can return to "+
				"this version, and only while pods of this version exist and are Ready. "+
				"Create the workload again with a label in matchLabels",
			w.Kind.Kind, w.Name, savedtemplate.WorkloadUIDLabel)
	case Wait:
		return controller.NewRequeueAfter(baselineRetry)
	}
	switch {
	case apierrs.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil
	case apierrs.IsConflict(err), apierrs.IsNotFound(err):
		return controller.NewRequeueAfter(staleCacheRetry)
	case apierrs.IsAlreadyExists(err):
		return controller.NewRequeueAfter(nameTakenRetry)
	}
	return err
}

// due reports whether a release needs a decision: most ChangeWorkloads must not
// cost an API request. For a version that failed its check, the template may be that of an earlier attempt, which the
// status does not name.
func due(c *v1alpha1.ChangeWorkload) bool {
	return c.Status.Phase == v1alpha1.ReleaseSuccess && c.Status.SavedTemplateName == "" ||
		c.CountsAsFailed()
}

// baselineUnavailable reports whether the release is a baseline whose pods are not
// available according to the cache. A baseline at zero replicas may be so for ever, and
// must not cost an API request a minute.
func (r *Reconciler) baselineUnavailable(c *v1alpha1.ChangeWorkload) bool {
	if c.Spec.Attempt > 0 || c.Status.Phase != v1alpha1.ReleaseSuccess {
		return false
	}
	w := r.cached(c.Namespace, c.Spec.WorkloadRef)
	return w != nil && (!w.Complete || w.Replicas == 0)
}

func gather(c *v1alpha1.ChangeWorkload, w *liveworkload.Workload) Input {
	return Input{
		Current:               w.At(c),
		Attempt:               c.Spec.Attempt,
		Phase:                 c.Status.Phase,
		Reason:                c.Status.GetCondition(apis.ConditionSucceeded).GetReason(),
		Pods:                  c.Status.Counts.Pods,
		Saved:                 c.Status.SavedTemplateName != "",
		Replicas:              w.Replicas,
		Complete:              w.Complete,
		VersionRecorded:       w.VersionRecorded,
		SelectsSavedTemplates: savedtemplate.SelectorMatches(w.Selector, w.UID),
	}
}

// save saves the template, then deletes those beyond the limit, then records it in the
// status: if the process dies in between, the next leader repeats all of it.
func (r *Reconciler) save(ctx context.Context, c *v1alpha1.ChangeWorkload, w *liveworkload.Workload) error {
	saved, err := savedtemplate.List(ctx, r.kube, w.Workload)
	if err != nil {
		return err
	}
	if k, ok := savedtemplate.Find(saved, w.Release.Version); !ok {
		err = r.create(ctx, w)
	} else if k.Release != w.Release {
		err = r.renew(ctx, w, k)
	}
	if err != nil {
		return err
	}
	if saved, err = savedtemplate.List(ctx, r.kube, w.Workload); err != nil {
		return err
	}
	for _, k := range savedtemplate.OverLimit(saved, r.settings().HistoryLimit) {
		if err := r.remove(ctx, w, k, "prune"); err != nil {
			return err
		}
	}
	return r.record(ctx, c, savedtemplate.Name(w.Name, w.Release.Version))
}

func (r *Reconciler) create(ctx context.Context, w *liveworkload.Workload) error {
	revision, err := savedtemplate.Build(w.Workload, w.Release, w.RawTemplate)
	if err != nil {
		return controller.NewPermanentError(err)
	}
	_, err = r.kube.AppsV1().ControllerRevisions(w.Namespace).Create(ctx, revision, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrs.IsAlreadyExists(err) {
		if err := r.deleteOrphan(ctx, w, revision.Name); err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("save version %s of %s %s/%s: %w", w.Release.Version, w.Kind.Kind, w.Namespace, w.Name, err)
	}
	r.count(ctx, "create", w)
	return nil
}

// deleteOrphan deletes the saved template with this name if it has no owner: the earlier workload was deleted with
// --cascade=orphan, and the garbage collector would keep its templates for ever. The template is not adopted, because
// the controller may not change the owners of a saved template.
func (r *Reconciler) deleteOrphan(ctx context.Context, w *liveworkload.Workload, name string) error {
	existing, err := r.kube.AppsV1().ControllerRevisions(w.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read ControllerRevision %s/%s: %w", w.Namespace, name, err)
	}
	if _, saved := existing.Labels[savedtemplate.WorkloadUIDLabel]; !saved || len(existing.OwnerReferences) > 0 {
		return nil
	}
	return r.remove(ctx, w, savedtemplate.Saved{
		Name: name, UID: existing.UID, ResourceVersion: existing.ResourceVersion, Release: w.Release,
	}, "delete")
}

func (r *Reconciler) renew(ctx context.Context, w *liveworkload.Workload, k savedtemplate.Saved) error {
	patch, err := savedtemplate.SuccessPatch(k, w.Release)
	if err != nil {
		return controller.NewPermanentError(err)
	}
	_, err = r.kube.AppsV1().ControllerRevisions(w.Namespace).Patch(ctx, k.Name, types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("save version %s of %s %s/%s again: %w", w.Release.Version, w.Kind.Kind, w.Namespace, w.Name, err)
	}
	r.count(ctx, "update", w)
	return nil
}

func (r *Reconciler) deleteFailed(ctx context.Context, c *v1alpha1.ChangeWorkload, w *liveworkload.Workload) error {
	saved, err := savedtemplate.List(ctx, r.kube, w.Workload)
	if err != nil {
		return err
	}
	// A later attempt of the version may have succeeded.
	if k, ok := savedtemplate.Find(saved, c.Spec.Reversion); ok && k.Release.Attempt <= c.Spec.Attempt {
		if err := r.remove(ctx, w, k, "delete"); err != nil {
			return err
		}
	}
	return r.record(ctx, c, "")
}

func (r *Reconciler) remove(ctx context.Context, w *liveworkload.Workload, k savedtemplate.Saved, action string) error {
	err := r.kube.AppsV1().ControllerRevisions(w.Namespace).Delete(ctx, k.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &k.UID, ResourceVersion: &k.ResourceVersion}})
	if apierrs.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("%s version %s of %s %s/%s: %w", action, k.Release.Version, w.Kind.Kind, w.Namespace, w.Name, err)
	}
	logging.FromContext(ctx).Infow("changed a saved template", "action", action, "name", k.Name, "attempt", k.Release.Attempt)
	r.changes.Add(ctx, 1, action, w.Kind.Kind)
	return nil
}

// record writes status.keptAs (SavedTemplateName).
func (r *Reconciler) record(ctx context.Context, c *v1alpha1.ChangeWorkload, name string) error {
	after := c.DeepCopy()
	after.Status.SavedTemplateName = name
	_, err := statuspatch.Write(ctx, r.client.AppV1alpha1().ChangeWorkloads(c.Namespace), fieldManager,
		c, after, statuspatch.ChangeWorkloadSavedTemplate)
	return err
}

func (r *Reconciler) count(ctx context.Context, action string, w *liveworkload.Workload) {
	logging.FromContext(ctx).Infow("changed a saved template", "action", action, "version", w.Release.Version, "attempt", w.Release.Attempt)
	r.changes.Add(ctx, 1, action, w.Kind.Kind)
}
