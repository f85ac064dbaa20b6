package rollback

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
	"github.com/breakwater-dev/breakwater/internal/text"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/liveworkload"
)

// recordStatus writes the rollback to the status of the ChangeWorkload that was
// rolled back, with the announcement of the CloudEvent. It follows from the rollback annotation of
// the workload, so if the process dies after the rollback, the next leader writes the status.
func (r *Reconciler) recordStatus(ctx context.Context, c *v1alpha1.ChangeWorkload, w *workload.Workload) error {
	rollback := v1alpha1.RollbackOf(w.Annotations)
	if rollback == nil || rollback.From() != c.Release() || c.Status.Rollback != nil {
		return nil
	}
	// An old ReplicaSet's annotations can bring back an old value: it is valid
	// only if the workload moved to the attempt that it names.
	if release, known := v1alpha1.ReleaseOf(w.Annotations); !known || release.Attempt < rollback.Attempt {
		return nil
	}
	// The API server would deny the status otherwise.
	rollback.Message, rollback.User = text.Truncate(rollback.Message, maxMessage), text.Truncate(rollback.User, maxUser)
	after := c.DeepCopy()
	after.Status.Rollback = rollback
	after.Status.Announce(v1alpha1.Announcement{
		Verb: string(events.VerbRolledBack), Phase: c.Status.Phase, EntryTimeUnix: c.Status.EntryTimeUnix,
		Reason: rollback.Kind.Reason(), Message: rollback.Message, User: rollback.User,
	})
	_, err := statuspatch.Write(ctx, r.client.AppV1alpha1().ChangeWorkloads(c.Namespace), fieldManager,
		c, after, statuspatch.ChangeWorkloadRollback)
	return err
}

// reportRollback logs a rollback, counts it and records an Event.
func (r *Reconciler) reportRollback(ctx context.Context, w *liveworkload.Workload, decision Decision, target Target) {
	reason := decision.Kind.Reason()
	logging.FromContext(ctx).Infow("rolled back", "kind", w.Kind.Kind, "workload", w.Name, "reason", reason, "user", decision.User,
		"from", w.Release.Version, "attempt", w.Release.Attempt, "to", target.Version, "message", decision.Message)
	r.rollbacks.Add(ctx, 1, reason, w.Kind.Kind)
	controller.GetEventRecorder(ctx).Eventf(w.Reference(), corev1.EventTypeWarning, reason,
		"rolled back from version %s to version %s: %s; %s; revert your manifest, too", w.Release.Version, target.Version, decision.Message, target.Proof)
}

// reportDrop logs that a rollback request was dropped, and records an Event.
func (r *Reconciler) reportDrop(ctx context.Context, w *workload.Workload, why string) {
	user := "an unknown user"
	if request := v1alpha1.RollbackRequestOf(w.Annotations); request != nil {
		user = request.User
	}
	logging.FromContext(ctx).Warnw("dropped a rollback request", "kind", w.Kind.Kind, "workload", w.Name, "user", user, "why", why)
	controller.GetEventRecorder(ctx).Eventf(w.Reference(), corev1.EventTypeWarning, v1alpha1.ReasonRollbackDropped,
		"dropped the rollback request of %s: %s", user, why)
}

// reportOnce reports that a due rollback is impossible. Each check of the pods finds this again, so a process
// reports it once for each release (again after maxReported others).
func (r *Reconciler) reportOnce(ctx context.Context, c *v1alpha1.ChangeWorkload, w *workload.Workload, why string) {
	if _, reported := r.reported.Get(c.UID); reported {
		return
	}
	r.reported.Add(c.UID, struct{}{})
	logging.FromContext(ctx).Warnw("rollback is due but impossible", "kind", w.Kind.Kind, "workload", w.Name, "why", why)
	controller.GetEventRecorder(ctx).Eventf(w.Reference(), corev1.EventTypeWarning, v1alpha1.ReasonRollbackImpossible, "not rolled back: %s", why)
}
