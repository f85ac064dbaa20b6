package changeworkload

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// publish sends CloudEvents and records Kubernetes Events of a status that was
// written: one Kubernetes Event for each transition.
func (r *Reconciler) publish(ctx context.Context, in Input, next *v1alpha1.ChangeWorkload, w *workload.Workload, d Decision) error {
	old := in.ChangeWorkload.Status.Phase
	if d.Reason == v1alpha1.ReasonBaseline {
		return nil
	}
	if next.Status.Phase != old {
		logging.FromContext(ctx).Infow("changeworkload", "from", old, "status", next.Status.Phase, "reason", d.Reason, "message", d.Detail)
	}
	var verbs []events.Verb
	if old == v1alpha1.WorkloadInit && next.Status.Phase != v1alpha1.WorkloadInit {
		verbs = append(verbs, events.VerbStarted)
		if b := bypassOf(in); b != nil {
			verbs = append(verbs, events.VerbBypassed)
			recordBypass(ctx, w, b)
		}
	}
	switch next.Status.Phase {
	case old:
		if becameFalse(in.ChangeWorkload, next, v1alpha1.WorkloadJudged) || becameFalse(in.ChangeWorkload, next, v1alpha1.WorkloadOrderJudged) {
			verbs = append(verbs, events.VerbProgressed) // not delayed until the next slot
		}
	case v1alpha1.WorkloadInit, v1alpha1.WorkloadRunning, v1alpha1.WorkloadTimeOutPre:
		verbs = append(verbs, events.VerbProgressed)
	case v1alpha1.WorkloadSuccess:
		verbs = append(verbs, events.VerbSucceeded)
		recordEvent(ctx, next, w, corev1.EventTypeNormal, d)
	case v1alpha1.WorkloadSuspend:
		verbs = append(verbs, events.VerbSuspended)
		recordEvent(ctx, next, w, corev1.EventTypeWarning, d)
	case v1alpha1.WorkloadFailed:
		verbs = append(verbs, events.VerbFailed)
		recordEvent(ctx, next, w, corev1.EventTypeWarning, d)
	}
	r.recordUnjudgedOrder(ctx, in, next, d)
	for _, verb := range verbs {
		if err := r.sendEvent(ctx, in, next, verb, d); err != nil {
			return err
		}
	}
	return nil
}

// recordUnjudgedOrder records and counts an unjudged order, once.
func (r *Reconciler) recordUnjudgedOrder(ctx context.Context, in Input, next *v1alpha1.ChangeWorkload, d Decision) {
	if d.orderUnjudgedReason == "" || !becameFalse(in.ChangeWorkload, next, v1alpha1.WorkloadOrderJudged) {
		return
	}
	policy := in.Settings.OrderNoVerdict()
	controller.GetEventRecorder(ctx).Eventf(next, corev1.EventTypeWarning, d.orderUnjudgedReason,
		"the order is unjudged, no-verdict of the order is %s: %s", policy, d.Order.Detail)
	r.unjudged.Add(ctx, 1, string(policy))
}

// becameFalse reports whether this write changed a condition to False.
func becameFalse(old, next *v1alpha1.ChangeWorkload, t apis.ConditionType) bool {
	return next.Status.GetCondition(t).IsFalse() && !old.Status.GetCondition(t).IsFalse()
}

// wakeSubmit sends wake-ups while function submit has to act on the order.
// Function submit reads status.orderStep, so that is written before.
func (r *Reconciler) wakeSubmit(ctx context.Context, in Input, d Decision) (time.Duration, error) {
	c := in.ChangeWorkload
	for _, name := range []v1alpha1.OrderStepName{v1alpha1.OrderStepStart, v1alpha1.OrderStepFinish, v1alpha1.OrderStepClose} {
		if !d.Order.WakeSubmit || d.Order.Step.Name != name {
			r.wakeups.Done("order/" + string(c.UID) + "/" + string(name))
		}
	}
	if !d.Order.WakeSubmit {
		return 0, nil
	}
	due, next := r.wakeups.Due("order/" + string(c.UID) + "/" + string(d.Order.Step.Name))
	if !due {
		return next, nil
	}
	event, err := events.New(events.OrderReady{
		Namespace: c.Namespace, Name: c.Name, UID: c.UID, Version: c.Spec.Reversion, Attempt: c.Spec.Attempt,
		Step: d.Order.Step.Name,
	})
	if err != nil {
		return 0, controller.NewPermanentError(fmt.Errorf("build event order.ready of ChangeWorkload %s/%s: %w", c.Namespace, c.Name, err))
	}
	r.sender.Send(ctx, event)
	return next, nil
}

const (
	// progressSlot is the interval of the progress events of a release.
	progressSlot = 30 * time.Second
	// maxProgressSlots bounds the releases in progressSlots. The event of an
	// evicted release is sent once more, with the same id.
	maxProgressSlots = 20000
)

// sendProgress sends the stored progress of a running release once a slot, and
// returns when the next slot begins.
func (r *Reconciler) sendProgress(ctx context.Context, in Input, d Decision) (time.Duration, error) {
	c := in.ChangeWorkload
	if c.Status.Phase != d.Phase || (d.Phase != v1alpha1.WorkloadRunning && d.Phase != v1alpha1.WorkloadTimeOutPre) {
		r.progressSlots.Remove(c.UID)
		return 0, nil
	}
	begin := in.Now.Truncate(progressSlot)
	next := begin.Add(progressSlot).Sub(in.Now)
	if sent, ok := r.progressSlots.Get(c.UID); (ok && sent == begin) || begin.Unix() <= c.Status.EntryTimeUnix {
		return next, nil // the event of the transition was sent in this slot
	}
	r.progressSlots.Add(c.UID, begin)
	at := in
	at.Now = begin
	return next, r.sendEvent(ctx, at, c, events.VerbProgressed, d)
}

func (r *Reconciler) sendEvent(ctx context.Context, in Input, c *v1alpha1.ChangeWorkload, verb events.Verb, d Decision) error {
	data := events.ChangeWorkload{
		Verb: verb, Namespace: c.Namespace, Name: c.Name, UID: c.UID,
		Workload: events.Workload{
			APIVersion: c.Spec.WorkloadRef.APIVersion, Kind: c.Spec.WorkloadRef.Kind, Name: c.Spec.WorkloadRef.Name,
		},
		Version: c.Spec.Reversion, Attempt: c.Spec.Attempt, Status: c.Status.Phase,
		EntryTimeUnix: c.Status.EntryTimeUnix, Reason: d.Reason, Message: d.Detail, Counts: c.Status.Counts,
	}
	if verb == events.VerbProgressed {
		data.SlotUnix = in.Now.Unix()
	}
	if b := bypassOf(in); b != nil && verb == events.VerbBypassed {
		data.User, data.Reason = b.User, bypassReason(b)
	}
	event, err := events.New(data)
	if err != nil {
		return controller.NewPermanentError(fmt.Errorf("build the event of ChangeWorkload %s/%s: %w", c.Namespace, c.Name, err))
	}
	r.sender.Send(ctx, event)
	return nil
}

// bypassOf returns the bypass that admitted this release, or nil.
func bypassOf(in Input) *v1alpha1.Bypass {
	if b := in.Workload.Bypass; b != nil && b.Attempt == in.ChangeWorkload.Spec.Attempt {
		return b
	}
	return nil
}

func bypassReason(b *v1alpha1.Bypass) string {
	if b.Kind == v1alpha1.BypassRollback {
		return v1alpha1.ReasonRollbackAdmitted
	}
	return v1alpha1.ReasonRepairAdmitted
}

func recordBypass(ctx context.Context, w *workload.Workload, b *v1alpha1.Bypass) {
	controller.GetEventRecorder(ctx).Eventf(w.Reference(), corev1.EventTypeNormal, bypassReason(b),
		"%s by %s was admitted although the %s is suspended", b.Kind, b.User, w.Kind.Kind)
}

// recordAction records a Kubernetes Event of a hold that began or ended.
func recordAction(ctx context.Context, w *workload.Workload, c *v1alpha1.ChangeWorkload, action Action) {
	recorder := controller.GetEventRecorder(ctx)
	switch {
	case action == ActionHold && w.InProgress:
		recorder.Eventf(w.Reference(), corev1.EventTypeWarning, v1alpha1.ReasonSuspended,
			"a check of version %s failed: the rollout is stopped and further releases are denied; see ChangeWorkload %s", c.Spec.Reversion, c.Name)
	case action == ActionHold:
		recorder.Eventf(w.Reference(), corev1.EventTypeWarning, v1alpha1.ReasonSuspended,
			"a check of version %s failed: further releases are denied; see ChangeWorkload %s", c.Spec.Reversion, c.Name)
	case action == ActionResume && w.Labels[v1alpha1.SuspendLabel] != "":
		recorder.Eventf(w.Reference(), corev1.EventTypeNormal, v1alpha1.ReasonResumed,
			"version %s passed: the suspension ended", c.Spec.Reversion)
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
