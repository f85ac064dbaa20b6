package rollback

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/liveworkload"
)

// recordStatus writes the rollback to the status of the ChangeWorkload that was
// rolled back, and sends the CloudEvent. Both follow from the record on the
// workload, so a process that died after the rollback completes them later.
func (r *Reconciler) recordStatus(ctx context.Context, c *v1alpha1.ChangeWorkload, w *workload.Workload) error {
	record := v1alpha1.RollbackOf(w.Annotations)
	if record == nil || record.From() != c.Release() || c.Status.Rollback != nil {
		return nil
	}
	// An old ReplicaSet's annotations can bring back an old record: it is valid
	// only if the workload moved to the attempt that it names.
	if release, known := v1alpha1.ReleaseOf(w.Annotations); !known || release.Attempt < record.Attempt {
		return nil
	}
	after := c.DeepCopy()
	after.Status.Rollback = record
	_, err := statuspatch.Write(ctx, r.client.AppV1alpha1().ChangeWorkloads(c.Namespace), fieldManager,
		c, after, statuspatch.ChangeWorkloadRollback)
	if err != nil {
		return err
	}
	event, err := events.New(events.ChangeWorkload{
		Verb: events.VerbRolledBack, Namespace: c.Namespace, Name: c.Name, UID: c.UID,
		Workload: events.Workload{
			APIVersion: c.Spec.WorkloadRef.APIVersion, Kind: c.Spec.WorkloadRef.Kind, Name: c.Spec.WorkloadRef.Name,
		},
		Version: c.Spec.Reversion, Attempt: c.Spec.Attempt, Status: c.Status.Phase,
		EntryTimeUnix: c.Status.EntryTimeUnix, Counts: c.Status.Counts,
		Reason: record.Kind.Reason(), Message: record.Message, User: record.User,
	})
	if err != nil {
		return controller.NewPermanentError(fmt.Errorf("send the event of the rollback of ChangeWorkload %s/%s: %w", c.Namespace, c.Name, err))
	}
	r.sender.Send(ctx, event)
	return nil
}

// announce logs a rollback, counts it and records an Event.
func (r *Reconciler) announce(ctx context.Context, w *liveworkload.Workload, cause Cause, target Target) {
	reason := cause.Kind.Reason()
	logging.FromContext(ctx).Infow("rolled back", "kind", w.Kind.Kind, "workload", w.Name, "reason", reason, "user", cause.User,
		"from", w.Release.Version, "attempt", w.Release.Attempt, "to", target.Version, "message", cause.Message)
	r.rollbacks.Add(ctx, 1, reason, w.Kind.Kind)
	controller.GetEventRecorder(ctx).Eventf(w.Reference(), corev1.EventTypeWarning, reason,
		"rolled back from version %s to version %s: %s; %s", w.Release.Version, target.Version, cause.Message, target.Proof)
}

func (r *Reconciler) announceDrop(ctx context.Context, w *workload.Workload, why string) {
	user := "somebody"
	if request := v1alpha1.RollbackRequestOf(w.Annotations); request != nil {
		user = request.User
	}
	logging.FromContext(ctx).Warnw("dropped a rollback request", "kind", w.Kind.Kind, "workload", w.Name, "user", user, "why", why)
	controller.GetEventRecorder(ctx).Eventf(w.Reference(), corev1.EventTypeWarning, v1alpha1.ReasonRollbackDropped,
		"dropped the rollback request of %s: %s", user, why)
}

// reportOnce reports once per release and process that a due rollback is
// impossible: every look at the pods finds it again.
func (r *Reconciler) reportOnce(ctx context.Context, c *v1alpha1.ChangeWorkload, w *workload.Workload, why string) {
	if _, told := r.reported.Get(c.UID); told {
		return
	}
	r.reported.Add(c.UID, struct{}{})
	logging.FromContext(ctx).Warnw("rollback is due but impossible", "kind", w.Kind.Kind, "workload", w.Name, "why", why)
	controller.GetEventRecorder(ctx).Eventf(w.Reference(), corev1.EventTypeWarning, v1alpha1.ReasonRollbackImpossible, "not rolled back: %s", why)
}
