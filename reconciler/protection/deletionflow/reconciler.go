// Package deletionflow derives the status of PodDeletionFlowControls from the deletions that
// the webhook has counted: whether the breaker is open, why, and when deletions are allowed
// again. It does not decide about deletions: while this controller is down, the webhook
// continues, and only the status that this controller derives is outdated.
//
// It also corrects a committed time that is too far in the future.
package deletionflow

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	policyclient "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/policy/v1alpha1"
	reconcilerflow "github.com/breakwater-dev/breakwater/client/injection/reconciler/policy/v1alpha1/poddeletionflowcontrol"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/deletionflow"
)

const (
	// minInterval is the minimum time between two reconciliations: a thousand
	// deletions in a second cause one write.
	minInterval = time.Second
	// refreshInterval is the interval at which the status is updated while deletions leave the
	// window and no deletion is added.
	refreshInterval = time.Minute
	// recheckInterval is the time until the local clock is compared again, if it may be wrong.
	recheckInterval = 10 * time.Second
)

// checkedClock is the local clock. Check returns an error unless the clock is close to the API server's.
type checkedClock interface {
	Now() time.Time
	Check(context.Context) error
}

// Reconciler derives the status of flow controls.
type Reconciler struct {
	client policyclient.PodDeletionFlowControlsGetter
	clock  checkedClock
	// skew is how far clocks may differ.
	skew time.Duration
	// sender sends CloudEvents.
	sender events.Sender
}

var _ reconcilerflow.Interface = (*Reconciler)(nil)

// ReconcileKind implements the generated reconciler.
func (r *Reconciler) ReconcileKind(ctx context.Context, f *v1alpha1.PodDeletionFlowControl) reconciler.Event {
	now := r.clock.Now()
	next := f.DeepCopy()
	corrected, err := r.correctCommittedTime(ctx, f, now)
	if err != nil {
		logging.FromContext(ctx).Warnw("the committed time is in the future by the local clock, which may be wrong, so it is not corrected", "error", err)
	} else if corrected != nil {
		next.Status = *corrected
	}
	state := deletionflow.BreakerOf(next, now, r.skew)
	derive(next, state)
	if !equality.Semantic.DeepEqual(f.Status, next.Status) {
		_, err := r.client.PodDeletionFlowControls().UpdateStatus(ctx, next, metav1.UpdateOptions{})
		switch {
		case apierrs.IsNotFound(err):
			return nil
		case apierrs.IsConflict(err): // a deletion was counted in the meantime
			return controller.NewRequeueAfter(minInterval)
		case err != nil:
			return fmt.Errorf("write status: %w", err)
		}
		recordEvents(ctx, f, next, corrected != nil)
		r.sendEvent(ctx, f, next, state)
	}
	if err != nil {
		return controller.NewRequeueAfter(recheckInterval)
	}
	return requeue(state, now)
}

// correctCommittedTime returns the corrected status, or nil if no correction is needed. It returns an error if the
// local clock may be wrong: one that is behind would move deletions out of the windows in which they count.
func (r *Reconciler) correctCommittedTime(ctx context.Context, f *v1alpha1.PodDeletionFlowControl, now time.Time) (*v1alpha1.PodDeletionFlowControlStatus, error) {
	corrected := deletionflow.CorrectCommittedTime(f, now, r.skew)
	if corrected == nil {
		return nil, nil
	}
	if err := r.clock.Check(ctx); err != nil {
		return nil, err
	}
	return corrected, nil
}

// derive sets the status fields that follow from the breaker.
func derive(f *v1alpha1.PodDeletionFlowControl, s deletionflow.Breaker) {
	f.Status.ObservedGeneration = f.Generation
	f.Status.Deleted, f.Status.RoomTime = s.Deleted, nil
	if s.Open && !s.RoomTime.IsZero() {
		f.Status.RoomTime = new(metav1.NewTime(s.RoomTime))
	}
	open := apis.Condition{Type: v1alpha1.FlowControlOpen, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonWithinLimit, Severity: apis.ConditionSeverityInfo}
	if s.Open {
		open.Status, open.Reason, open.Message = corev1.ConditionTrue, v1alpha1.ReasonLimitHit, s.Message(f.Status.Shares)
	}
	if s.Err != nil {
		open.Reason = v1alpha1.ReasonInvalidRule
	}
	f.GetConditionSet().Manage(f.GetStatus()).SetCondition(open)
}

// recordEvents records Kubernetes Events about a change, after it is written.
func recordEvents(ctx context.Context, before, after *v1alpha1.PodDeletionFlowControl, corrected bool) {
	recorder, was, is := controller.GetEventRecorder(ctx), isOpen(before), isOpen(after)
	condition := after.GetStatus().GetCondition(v1alpha1.FlowControlOpen)
	switch {
	case is && !was:
		logging.FromContext(ctx).Warnw("the breaker is open", "why", condition.Message)
		recorder.Event(after, corev1.EventTypeWarning, condition.Reason, "the breaker is open: "+condition.Message)
	case was && !is:
		recorder.Event(after, corev1.EventTypeNormal, condition.Reason, "the breaker is closed: the limits allow deletions again")
	}
	if corrected {
		recorder.Eventf(after, corev1.EventTypeWarning, v1alpha1.ReasonCommittedTimeCorrected,
			"the last deletion was counted at %s, which is in the future: the clock of a replica was wrong. This deletion now counts as if it was made now; no count is lost",
			before.Status.CommittedTime.UTC().Format(time.RFC3339))
	}
}

func isOpen(f *v1alpha1.PodDeletionFlowControl) bool {
	c := f.GetStatus().GetCondition(v1alpha1.FlowControlOpen)
	return c != nil && c.Status == corev1.ConditionTrue
}

// requeue decides when to reconcile again without an event: when the limit allows deletions
// again, or while deletions leave the window.
func requeue(s deletionflow.Breaker, now time.Time) reconciler.Event {
	switch {
	case s.Open && !s.RoomTime.IsZero():
		return controller.NewRequeueAfter(min(max(s.RoomTime.Sub(now), minInterval), refreshInterval))
	case s.Deleted > 0:
		return controller.NewRequeueAfter(refreshInterval)
	default:
		return nil
	}
}
