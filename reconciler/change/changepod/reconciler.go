// Package changepod reconciles ChangePods: the check of one batch of pods by the
// server and other judges. The states, in status.status, are
//
//	"" -> PreWait -> PreSubmitted -> PostWait -> PostSubmitted -> ExecuteDone
//
// From each of them a batch can go directly to ExecuteDone. How it ended is in status.message:
// PreFailed, PreTimeout, PostFailed, PostTimeout or PostFinish. The states follow from facts with other
// writers: the functions submit (calls to the server), verdict and judge, and people. The
// reconciler derives the state, keeps the deadlines, and wakes function submit until it has
// acted, and other judges until they have answered. If a verdict of the server ends a batch,
// function verdict stores the end with it (package batchstatus).
package changepod

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned"
	reconcilerchangepod "github.com/breakwater-dev/breakwater/client/injection/reconciler/change/v1alpha1/changepod"
	listers "github.com/breakwater-dev/breakwater/client/listers/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/deadline"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/releasetrace"
	"github.com/breakwater-dev/breakwater/internal/resend"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/statuspatch"
	"github.com/breakwater-dev/breakwater/reconciler/change/callqueue"
)

// fieldManager owns what this binary writes.
const fieldManager = "controller"

// ownerRetry is the delay while the ChangeWorkload is not in the cache.
const ownerRetry = 5 * time.Second

// staleCacheRetry is the delay after a write that failed because the cache was stale.
const staleCacheRetry = 50 * time.Millisecond

// Reconciler derives the state of ChangePods.
type Reconciler struct {
	client          versioned.Interface
	namespaces      corelisters.NamespaceLister
	changeWorkloads listers.ChangeWorkloadLister
	// settings returns the current settings.
	settings func() settings.Settings
	// serverConfigured reports whether an AlterShield server is configured.
	serverConfigured func() bool
	sender           events.Sender
	wakeups          *resend.Schedule
	// judgeWakeUps are the wake-ups of judges other than the server.
	judgeWakeUps *resend.Schedule
	calls        *callqueue.Queue
	// enqueue enqueues a ChangePod whose call is admitted.
	enqueue func(types.NamespacedName)
	clock   clock.PassiveClock
	// interimWrites limits the writes of interim phases.
	interimWrites *rate.Limiter
	// unjudged counts unjudged batches.
	unjudged metrics.Counter
	// decidingSince is the time of the first decision of this process, by namespace.
	decidingSince resend.DecidingSince
}

var _ reconcilerchangepod.Interface = (*Reconciler)(nil)

// ReconcileKind derives the state of one ChangePod.
func (r *Reconciler) ReconcileKind(ctx context.Context, c *v1alpha1.ChangePod) reconciler.Event {
	if c.DeletionTimestamp != nil {
		r.forget(c)
		return nil
	}
	owner, err := r.release(c)
	if err != nil || owner == nil {
		return err
	}
	ctx = releasetrace.OfBatch(ctx, c) // of the wake-ups
	now, s := r.clock.Now(), r.settings()
	decidingSince := r.decidingSince.In(c.Namespace, now)
	d := Decide(Input{
		Now: now, Settings: s, ServerConfigured: r.serverConfigured(),
		OrderAbandoned: owner.Status.OrderAbandoned(), OrderDetail: owner.Status.GetCondition(v1alpha1.ReleaseOrderAccepted).GetMessage(),
		OrderCheckFailed: owner.Status.OrderCheckFailed(), OrderJudgedSince: orderJudgedSince(owner),
		Superseded: owner.Status.FailedAndReplaced(), WokenSince: r.wokenSince(c, s.SubmitTimeout, decidingSince),
		DecidingSince: decidingSince, ChangePod: c,
	})
	again, err := r.wakeSubmit(ctx, c, owner, d)
	if err != nil {
		return err
	}
	look, err := r.wakeJudges(ctx, c, owner, d)
	if err != nil {
		return err
	}
	again = deadline.ShorterWait(again, look)
	next, changed := derive(c, d, s, now)
	if changed {
		if wait := r.writeDelay(d, now); wait > 0 {
			again = deadline.ShorterWait(again, wait)
		} else if err := r.write(ctx, c, next); apierrs.IsConflict(err) {
			return controller.NewRequeueAfter(staleCacheRetry)
		} else if err != nil {
			return err
		}
	}
	if !d.Deadline.IsZero() {
		again = deadline.ShorterWait(again, deadline.WaitUntil(d.Deadline, now))
	}
	if again > 0 {
		return controller.NewRequeueAfter(again)
	}
	return nil
}

// release returns the ChangeWorkload of a batch. It returns nil if there is nothing to do: the namespace is not opted in, or
// the batch is an orphan.
func (r *Reconciler) release(c *v1alpha1.ChangePod) (*v1alpha1.ChangeWorkload, error) {
	if ns, err := r.namespaces.Get(c.Namespace); apierrs.IsNotFound(err) || err == nil && !v1alpha1.OptedIn(ns) {
		r.forget(c) // no call is made; an opt-in reconciles again
		if err == nil {
			r.decidingSince.Pause(c.Namespace)
		}
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read namespace %s: %w", c.Namespace, err)
	}
	owner, err := r.changeWorkloads.ChangeWorkloads(c.Namespace).Get(c.Spec.ChangeWorkloadID)
	if apierrs.IsNotFound(err) {
		// The garbage collector will delete the ChangePod, or this cache is older
		// than that of ChangePods. No event of a ChangeWorkload reconciles again.
		if metav1.GetControllerOf(c) == nil {
			return nil, nil // an orphan has no release
		}
		return nil, controller.NewRequeueAfter(ownerRetry)
	} else if err != nil {
		return nil, fmt.Errorf("read ChangeWorkload %s: %w", c.Spec.ChangeWorkloadID, err)
	}
	return owner, nil
}

// write writes the derived status.
func (r *Reconciler) write(ctx context.Context, old, next *v1alpha1.ChangePod) error {
	_, err := statuspatch.Write(ctx, r.client.AppV1alpha1().ChangePods(next.Namespace), fieldManager,
		old, next, statuspatch.ChangePodDerived)
	if apierrs.IsNotFound(err) {
		return nil
	} else if err != nil {
		return err
	}
	logging.FromContext(ctx).Infow("wrote the status of the batch", "status", next.Status.Phase, "message", next.Status.Message)
	r.recordUnjudged(ctx, old, next)
	releasetrace.BatchIfEnded(ctx, old.Status.Phase, next, r.clock.Now())
	return nil
}

// recordUnjudged records and counts an unjudged batch, once.
func (r *Reconciler) recordUnjudged(ctx context.Context, old, next *v1alpha1.ChangePod) {
	cond := next.Status.GetCondition(v1alpha1.BatchJudged)
	if !cond.IsFalse() || old.Status.GetCondition(v1alpha1.BatchJudged).IsFalse() {
		return
	}
	rule := r.settings().RuleOfBatch(next)
	controller.GetEventRecorder(ctx).Eventf(next, corev1.EventTypeWarning, cond.Reason, "unjudged, %s: %s", rule, cond.Message)
	r.unjudged.Add(ctx, 1, cond.Reason, string(rule.Policy))
}

// orderJudgedSince is the last change of condition OrderJudged.
func orderJudgedSince(c *v1alpha1.ChangeWorkload) time.Time {
	if cond := c.Status.GetCondition(v1alpha1.ReleaseOrderJudged); cond != nil {
		return cond.LastTransitionTime.Inner.Time
	}
	return time.Time{}
}

// writeDelay is the delay of the write of a phase. An interim phase may end soon,
// and only people read it, so it waits and counts against the limit. The last phase
// is written at once.
func (r *Reconciler) writeDelay(d Decision, now time.Time) time.Duration {
	switch {
	case d.Phase == v1alpha1.BatchExecuteDone, d.HeldUnjudged:
		return 0
	case now.Before(d.Since.Add(minPhaseAge)):
		return d.Since.Add(minPhaseAge).Sub(now)
	case !r.interimWrites.AllowN(now, 1):
		return interimWriteRetry
	default:
		return 0
	}
}
