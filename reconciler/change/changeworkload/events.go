package changeworkload

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/deadline"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// publish records Kubernetes Events of a status that was written, one for each
// transition, and sends its progress. The status announces the CloudEvents of a
// transition (announceChanges).
func (r *Reconciler) publish(ctx context.Context, in Input, next *v1alpha1.ChangeWorkload, w *workload.Workload, d Decision) error {
	old := in.ChangeWorkload.Status.Phase
	recordDrift(ctx, in.ChangeWorkload, next, w)
	recordNotHeld(ctx, in.ChangeWorkload, next, w)
	recordStuck(ctx, in.ChangeWorkload, next, w, d)
	if d.Reason == v1alpha1.ReasonBaseline {
		return nil
	}
	if next.Status.Phase != old {
		logging.FromContext(ctx).Infow("The state of the release changed", "from", old, "status", next.Status.Phase, "reason", d.Reason, "message", d.Detail)
	}
	if b := bypassOf(in); b != nil && old == v1alpha1.ReleaseInit && next.Status.Phase != v1alpha1.ReleaseInit {
		recordBypass(ctx, w, b)
	}
	progressed := false
	switch next.Status.Phase {
	case old: // only a condition that became False is sent at once; sendProgress sends the rest, once an interval
		progressed = becameFalse(in.ChangeWorkload, next, v1alpha1.ReleaseJudged) || becameFalse(in.ChangeWorkload, next, v1alpha1.ReleaseOrderJudged)
	case v1alpha1.ReleaseInit, v1alpha1.ReleaseRunning, v1alpha1.ReleaseNoNewBatch:
		progressed = true
	case v1alpha1.ReleaseSuccess:
		recordEvent(ctx, next, w, corev1.EventTypeNormal, d)
	case v1alpha1.ReleaseSuspend, v1alpha1.ReleaseFailed:
		recordEvent(ctx, next, w, corev1.EventTypeWarning, d)
	}
	r.recordUnjudgedOrder(ctx, in, next, d)
	if progressed {
		return r.sendProgressOf(ctx, in.Now, next, d)
	}
	return nil
}

// recordUnjudgedOrder records and counts an unjudged order, once.
func (r *Reconciler) recordUnjudgedOrder(ctx context.Context, in Input, next *v1alpha1.ChangeWorkload, d Decision) {
	if d.unjudgedReason == "" || !becameFalse(in.ChangeWorkload, next, v1alpha1.ReleaseOrderJudged) {
		return
	}
	rule := in.Settings.RuleOfOrder(in.ChangeWorkload)
	controller.GetEventRecorder(ctx).Eventf(next, corev1.EventTypeWarning, d.unjudgedReason,
		"the order is unjudged, %s: %s", rule, d.Order.Detail)
	r.unjudged.Add(ctx, 1, string(rule.Policy))
}

// becameFalse reports whether this write changed a condition to False.
func becameFalse(old, next *v1alpha1.ChangeWorkload, t apis.ConditionType) bool {
	return next.Status.GetCondition(t).IsFalse() && !old.Status.GetCondition(t).IsFalse()
}

const (
	// minEventInterval and maxEventInterval bound the interval of the progress events of
	// a release.
	minEventInterval = 30 * time.Second
	maxEventInterval = 64 * minEventInterval
	// maxEventTimes bounds the releases in eventTimes. The event of an
	// evicted release is sent once more, with the same id.
	maxEventTimes = 20000
)

// sendProgress sends the stored progress of a running release once an interval, and
// returns when the next interval begins.
func (r *Reconciler) sendProgress(ctx context.Context, in Input, d Decision) (time.Duration, error) {
	c := in.ChangeWorkload
	if c.Status.Phase != d.Phase || (d.Phase != v1alpha1.ReleaseRunning && d.Phase != v1alpha1.ReleaseNoNewBatch) {
		r.eventTimes.Remove(c.UID)
		return 0, nil
	}
	interval := eventInterval(in)
	begin := in.Now.Truncate(interval)
	next := begin.Add(interval).Sub(in.Now)
	// A longer interval may begin before that of the last event.
	if sent, ok := r.eventTimes.Get(c.UID); (ok && !begin.After(sent.(time.Time))) || begin.Unix() <= c.Status.EntryTimeUnix {
		return next, nil // the event of the transition was sent in this interval
	}
	r.eventTimes.Add(c.UID, begin)
	return next, r.sendProgressOf(ctx, begin, c, d)
}

// eventInterval is the interval of progress events. It doubles with the time without
// progress: the progress of a release that waits for days does not change.
func eventInterval(in Input) time.Duration {
	quiet := in.Now.Sub(deadline.Latest(lastProgressTime(in), time.Unix(in.ChangeWorkload.Status.EntryTimeUnix, 0)))
	interval := minEventInterval
	for interval < maxEventInterval && quiet >= 20*interval {
		interval *= 2
	}
	return interval
}

// sendProgressOf sends the progress of a release at a time.
func (r *Reconciler) sendProgressOf(ctx context.Context, at time.Time, c *v1alpha1.ChangeWorkload, d Decision) error {
	data := dataOf(c, events.VerbProgressed)
	data.ProgressUnix, data.Reason, data.Message = at.Unix(), d.Reason, d.Detail
	e, err := newEvent(data)
	if err != nil {
		return err
	}
	r.sender.Send(ctx, e)
	return nil
}

// bypassOf returns the bypass that admitted this release, or nil.
func bypassOf(in Input) *v1alpha1.Bypass {
	if b := in.Workload.Bypass; b != nil && b.Attempt == in.ChangeWorkload.Spec.Attempt {
		return b
	}
	return nil
}

func recordBypass(ctx context.Context, w *workload.Workload, b *v1alpha1.Bypass) {
	controller.GetEventRecorder(ctx).Eventf(w.Reference(), corev1.EventTypeNormal, b.Kind.Reason(),
		"%s by %s was admitted although the %s is suspended", b.Kind, b.User, w.Kind.Kind)
}

// recordAction records a Kubernetes Event of a hold that began or ended.
func recordAction(ctx context.Context, w *workload.Workload, c *v1alpha1.ChangeWorkload, action Action) {
	recorder := controller.GetEventRecorder(ctx)
	switch {
	case action == ActionSuspend && w.InProgress:
		recorder.Eventf(w.Reference(), corev1.EventTypeWarning, v1alpha1.ReasonSuspended,
			"suspended because of version %s: the rollout is stopped, and releases are denied except a repair and a rollback; see ChangeWorkload %s", c.Spec.Reversion, c.Name)
	case action == ActionSuspend:
		recorder.Eventf(w.Reference(), corev1.EventTypeWarning, v1alpha1.ReasonSuspended,
			"suspended because of version %s: releases are denied except a repair and a rollback; see ChangeWorkload %s", c.Spec.Reversion, c.Name)
	case action == ActionHold:
		recorder.Eventf(w.Reference(), corev1.EventTypeWarning, v1alpha1.ReasonHeldUnjudged,
			"version %s is unjudged: its rollout is held; condition Held of ChangeWorkload %s says for what it waits", c.Spec.Reversion, c.Name)
	case action == ActionResume && v1alpha1.HoldOf(w.Annotations).IsUntilJudged():
		recorder.Eventf(w.Reference(), corev1.EventTypeNormal, v1alpha1.ReasonResumed,
			"the traffic is not held any more for the check of version %s; see ChangeWorkload %s", c.Spec.Reversion, c.Name)
	case action == ActionResume && v1alpha1.HoldOf(w.Annotations).IsWithoutSuspension():
		recorder.Eventf(w.Reference(), corev1.EventTypeNormal, v1alpha1.ReasonResumed, "the rollout of version %s is not held any more", c.Spec.Reversion)
	case action == ActionResume && v1alpha1.SuspensionOf(w.Labels) != "":
		recorder.Eventf(w.Reference(), corev1.EventTypeNormal, v1alpha1.ReasonResumed,
			"the suspension ended with version %s; see ChangeWorkload %s", c.Spec.Reversion, c.Name)
	}
}

// recordNotHeld records a Kubernetes Event when the workload cannot be changed, and when somebody else has resumed its
// rollout. The Events of the following attempts to change it are those of the generated reconciler.
func recordNotHeld(ctx context.Context, old, next *v1alpha1.ChangeWorkload, w *workload.Workload) {
	held := next.Status.GetCondition(v1alpha1.ReleaseHeld)
	switch reason := held.GetReason(); {
	case reason == old.Status.GetCondition(v1alpha1.ReleaseHeld).GetReason():
	case reason == v1alpha1.ReasonWorkloadUnchanged, reason == v1alpha1.ReasonResumedUnjudged:
		controller.GetEventRecorder(ctx).Eventf(w.Reference(), corev1.EventTypeWarning, reason, "ChangeWorkload %s: %s", next.Name, held.Message)
	}
}

// recordStuck records Kubernetes Events when a rollout becomes stuck.
func recordStuck(ctx context.Context, old, next *v1alpha1.ChangeWorkload, w *workload.Workload, d Decision) {
	if d.Reason == v1alpha1.ReasonRolloutStuck && reasonOfSucceeded(old) != d.Reason {
		recordEvent(ctx, next, w, corev1.EventTypeWarning, d)
	}
}

func recordEvent(ctx context.Context, c *v1alpha1.ChangeWorkload, w *workload.Workload, eventType string, decision Decision) {
	recorder := controller.GetEventRecorder(ctx)
	recorder.Event(c, eventType, decision.Reason, decision.Detail)
	if eventType == corev1.EventTypeNormal {
		return // the Events of the workload are only those that require an action
	}
	recorder.Eventf(w.Reference(), eventType, decision.Reason, "ChangeWorkload %s: %s", c.Name, decision.Detail)
}
