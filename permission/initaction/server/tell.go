package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/delivery"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// pace is the least time between two writes of a pod's condition.
const pace = time.Second

// teller shows on the pod how far its permissions are: condition, Events and
// CloudEvents. Nothing depends on what it writes, so an error is only logged.
type teller struct {
	*server
	pod *corev1.Pod
	// last is what the condition says, and wrote is when it was written.
	last  corev1.PodCondition
	wrote time.Time
	// held: there is something that was not written yet.
	held   bool
	leaked bool
}

func newTeller(s *server, pod *corev1.Pod) *teller {
	t := &teller{server: s, pod: pod}
	if c := podmeta.Condition(pod, podmeta.ConditionAuthorized); c != nil {
		t.last = *c
	}
	return t
}

// progress tells of a step that may last.
func (t *teller) progress(ctx context.Context, f Facts, d Decision) {
	switch d.Action {
	case AwaitPod, Poll, Hold, Stop:
		t.condition(ctx, corev1.ConditionFalse, d.Reason, explain(f, d))
	case Begin, Ask, Read, Register, RevokeOthers, Settle, Grant:
		// It takes milliseconds, and has an end that is told.
	}
}

// unreachable tells that the centre gives no answer.
func (t *teller) unreachable(ctx context.Context, message string) {
	t.condition(ctx, corev1.ConditionFalse, podmeta.ReasonUnreachable, message+"; it is asked again")
}

func (t *teller) condition(ctx context.Context, status corev1.ConditionStatus, reason, message string) {
	now := t.Clock.Now()
	if t.last.Status == status && t.last.Reason == reason && t.last.Message == message {
		t.held = false
		return
	}
	if status == corev1.ConditionFalse && t.last.Status == status && now.Sub(t.wrote) < pace {
		t.held = true
		return
	}
	next := corev1.PodCondition{Type: podmeta.ConditionAuthorized, Status: status, Reason: reason, Message: message, LastTransitionTime: t.last.LastTransitionTime}
	if t.last.Status != status {
		next.LastTransitionTime = metav1.NewTime(now)
	}
	if err := t.write(ctx, next); err != nil {
		logging.FromContext(ctx).Warnw("the condition could not be written", "pod", t.pod.Namespace+"/"+t.pod.Name, "error", err)
		return
	}
	t.last, t.wrote, t.held = next, now, false
}

// write patches one condition; others and those of the kubelet stay.
func (t *teller) write(ctx context.Context, next corev1.PodCondition) error {
	// Whoever hung up is told all the same: it will come again.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": t.pod.UID},
		"status":   map[string]any{"conditions": []corev1.PodCondition{next}},
	})
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err = t.Kube.CoreV1().Pods(t.pod.Namespace).Patch(ctx, t.pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrs.IsNotFound(err) || apierrs.IsConflict(err) {
		return nil // it is gone
	}
	return err
}

func (t *teller) requested(ctx context.Context, app api.Application) {
	if app.State == api.Requested || app.State == api.Applying {
		t.Recorder.Eventf(t.pod, corev1.EventTypeNormal, podmeta.ReasonRequested, "asked for permission set %s for %s, attempt %d",
			app.Set, strings.Join(app.PodIPs, ", "), app.Attempt)
		delivery.SendBestEffort(ctx, t.Events, podmeta.PermissionEvent(events.PermissionRequested, t.pod, app))
	}
	if len(app.Leaked) > 0 && !t.leaked {
		t.leaked = true
		t.metrics.leakedIPs.Add(ctx, 1)
		leak := app.Leaked[0]
		t.Recorder.Eventf(t.pod, corev1.EventTypeWarning, podmeta.ReasonLeakedIP,
			"address %s still has permission %s of pod %s/%s, which is gone; ask %s", leak.IP, leak.Permission, leak.Namespace, leak.Pod, leak.Owner)
	}
}

func (t *teller) denied(ctx context.Context, app api.Application) {
	d := podmeta.PermissionEvent(events.PermissionDenied, t.pod, app)
	d.Reason, d.Message = podmeta.ReasonDenied, describe(app)
	delivery.SendBestEffort(ctx, t.Events, d)
}

// failed tells of an attempt that was not granted, and of the breaker if it
// opened by that.
func (t *teller) failed(ctx context.Context, reason, message string, d podbreaker.Decision) {
	t.wrote = time.Time{} // an end is told at once
	outlook := ""
	switch d.Outcome {
	case podbreaker.OpenDenied:
		outlook = fmt.Sprintf("; denied %d times: not asked for again until somebody resets it", d.Entry.Denied)
	case podbreaker.OpenFailed:
		outlook = fmt.Sprintf("; failed %d times: next try %s", d.Entry.Failed, clockTime(d.Next))
	}
	t.condition(ctx, corev1.ConditionFalse, reason, message+outlook)
	t.Recorder.Event(t.pod, corev1.EventTypeWarning, reason, message)
	if !d.Opened {
		return
	}
	why := podmeta.ReasonBreakerFailed
	if d.Outcome == podbreaker.OpenDenied {
		why = podmeta.ReasonBreakerDenied
	}
	t.Recorder.Event(t.pod, corev1.EventTypeWarning, why, strings.TrimPrefix(outlook, "; "))
	t.metrics.breaker(ctx, why)
	delivery.SendBestEffort(ctx, t.Events, t.breaking(events.BreakerOpened, d.Entry, why, message))
}

// closed tells that a breaker which had been open is not any more.
func (t *teller) closed(ctx context.Context, before podbreaker.Entry, user string) {
	p := t.Settings().Breaker
	if before.Denied < p.Threshold && before.Failed < p.Threshold {
		return
	}
	message := "permissions are asked for again"
	if user != "" {
		message = user + " reset the breaker: " + message
	}
	t.Recorder.Event(t.pod, corev1.EventTypeNormal, podmeta.ReasonBreakerClosed, message)
	t.metrics.breaker(ctx, podmeta.ReasonBreakerClosed)
	d := t.breaking(events.BreakerClosed, before, podmeta.ReasonBreakerClosed, message)
	d.User = user
	delivery.SendBestEffort(ctx, t.Events, d)
}

func (t *teller) granted(ctx context.Context, f Facts, took time.Duration) string {
	message := fmt.Sprintf("%s granted to %s in %s", plural(f.Sets), strings.Join(f.IPs, ", "), took.Round(time.Millisecond))
	t.wrote = time.Time{}
	if t.last.Status != corev1.ConditionTrue {
		t.condition(ctx, corev1.ConditionTrue, podmeta.ReasonGranted, message)
		t.Recorder.Event(t.pod, corev1.EventTypeNormal, podmeta.ReasonGranted, message)
		for _, set := range f.Sets {
			delivery.SendBestEffort(ctx, t.Events, podmeta.PermissionEvent(events.PermissionGranted, t.pod, f.Applications[set]))
		}
	}
	return message
}

func plural(sets []string) string {
	if len(sets) == 1 {
		return "permission set " + sets[0]
	}
	return "permission sets " + strings.Join(sets, ", ")
}

func (t *teller) breaking(verb events.BreakerVerb, e podbreaker.Entry, reason, message string) events.Breaker {
	return events.Breaker{Verb: verb, Namespace: t.pod.Namespace, Pod: t.pod.Name, PodUID: t.pod.UID, AtUnix: e.LastRequestFailTime.Unix(),
		Denied: int64(e.Denied), Failed: int64(e.Failed), Reason: reason, Message: message}
}
