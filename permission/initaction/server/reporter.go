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
const minWriteInterval = time.Second

// teller shows on the pod how far its permissions are: condition, Events and
// CloudEvents. Nothing depends on what it writes, so an error is only logged.
type podReporter struct {
	*server
	pod *corev1.Pod
	// last is what the condition says, and wrote is when it was written.
	lastCondition corev1.PodCondition
	lastWrite     time.Time
	// held: there is something that was not written yet.
	pending      bool
	leakReported bool
}

func newPodReporter(s *server, pod *corev1.Pod) *podReporter {
	t := &podReporter{server: s, pod: pod}
	if c := podmeta.Condition(pod, podmeta.ConditionAuthorized); c != nil {
		t.lastCondition = *c
	}
	return t
}

// progress tells of a step that may last.
func (t *podReporter) progress(ctx context.Context, f Facts, d Decision) {
	switch d.Action {
	case WaitForPod, Poll, WaitForBreaker, Stop:
		t.setCondition(ctx, corev1.ConditionFalse, d.Reason, waitingMessage(f, d))
	case AcquireBreaker, Apply, ReadApplications, Register, RevokeOtherIPs, RecordFailure, Complete:
		// It takes milliseconds, and has an end that is told.
	}
}

// unreachable tells that the centre gives no answer.
func (t *podReporter) unreachable(ctx context.Context, message string) {
	t.setCondition(ctx, corev1.ConditionFalse, podmeta.ReasonPermissionCentreUnreachable, message+"; it is asked again")
}

func (t *podReporter) setCondition(ctx context.Context, status corev1.ConditionStatus, reason, message string) {
	now := t.Clock.Now()
	if t.lastCondition.Status == status && t.lastCondition.Reason == reason && t.lastCondition.Message == message {
		t.pending = false
		return
	}
	if status == corev1.ConditionFalse && t.lastCondition.Status == status && now.Sub(t.lastWrite) < minWriteInterval {
		t.pending = true
		return
	}
	next := corev1.PodCondition{Type: podmeta.ConditionAuthorized, Status: status, Reason: reason, Message: message, LastTransitionTime: t.lastCondition.LastTransitionTime}
	if t.lastCondition.Status != status {
		next.LastTransitionTime = metav1.NewTime(now)
	}
	if err := t.patchCondition(ctx, next); err != nil {
		logging.FromContext(ctx).Warnw("the condition could not be written", "pod", t.pod.Namespace+"/"+t.pod.Name, "error", err)
		return
	}
	t.lastCondition, t.lastWrite, t.pending = next, now, false
}

// write patches one condition; others and those of the kubelet stay.
func (t *podReporter) patchCondition(ctx context.Context, next corev1.PodCondition) error {
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

func (t *podReporter) requested(ctx context.Context, app api.Application) {
	if app.State == api.Requested || app.State == api.Applying {
		t.Recorder.Eventf(t.pod, corev1.EventTypeNormal, podmeta.ReasonPermissionRequested, "asked for permission set %s for %s, attempt %d",
			app.Set, strings.Join(app.PodIPs, ", "), app.Attempt)
		delivery.SendBestEffort(ctx, t.Events, podmeta.PermissionEvent(events.PermissionRequested, t.pod, app))
	}
	if len(app.Leaked) > 0 && !t.leakReported {
		t.leakReported = true
		t.metrics.leakedIPs.Add(ctx, 1)
		leak := app.Leaked[0]
		t.Recorder.Eventf(t.pod, corev1.EventTypeWarning, podmeta.ReasonLeakedPermissionOnPodIP,
			"address %s still has permission %s of pod %s/%s, which is gone; ask %s", leak.IP, leak.Permission, leak.Namespace, leak.Pod, leak.Owner)
	}
}

func (t *podReporter) denied(ctx context.Context, app api.Application) {
	d := podmeta.PermissionEvent(events.PermissionDenied, t.pod, app)
	d.Reason, d.Message = podmeta.ReasonPermissionDenied, applicationMessage(app)
	delivery.SendBestEffort(ctx, t.Events, d)
}

// failed tells of an attempt that was not granted, and of the breaker if it
// opened by that.
func (t *podReporter) failed(ctx context.Context, reason, message string, d podbreaker.Decision) {
	t.lastWrite = time.Time{} // an end is told at once
	outlook := ""
	switch d.Outcome {
	case podbreaker.OpenDenied:
		outlook = fmt.Sprintf("; denied %d times: not asked for again until somebody resets it", d.Entry.Denied)
	case podbreaker.OpenFailed:
		outlook = fmt.Sprintf("; failed %d times: next try %s", d.Entry.Failed, formatTime(d.Next))
	}
	t.setCondition(ctx, corev1.ConditionFalse, reason, message+outlook)
	t.Recorder.Event(t.pod, corev1.EventTypeWarning, reason, message)
	if !d.Opened {
		return
	}
	why := podmeta.ReasonBreakerOpenFailed
	if d.Outcome == podbreaker.OpenDenied {
		why = podmeta.ReasonBreakerOpenDenied
	}
	t.Recorder.Event(t.pod, corev1.EventTypeWarning, why, strings.TrimPrefix(outlook, "; "))
	t.metrics.breaker(ctx, why)
	delivery.SendBestEffort(ctx, t.Events, t.breakerEvent(events.BreakerOpened, d.Entry, why, message))
}

// closed tells that a breaker which had been open is not any more.
func (t *podReporter) closed(ctx context.Context, before podbreaker.Entry, user string) {
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
	d := t.breakerEvent(events.BreakerClosed, before, podmeta.ReasonBreakerClosed, message)
	d.User = user
	delivery.SendBestEffort(ctx, t.Events, d)
}

func (t *podReporter) granted(ctx context.Context, f Facts, took time.Duration) string {
	message := fmt.Sprintf("%s granted to %s in %s", joinSets(f.Sets), strings.Join(f.IPs, ", "), took.Round(time.Millisecond))
	t.lastWrite = time.Time{}
	if t.lastCondition.Status != corev1.ConditionTrue {
		t.setCondition(ctx, corev1.ConditionTrue, podmeta.ReasonPermissionGranted, message)
		t.Recorder.Event(t.pod, corev1.EventTypeNormal, podmeta.ReasonPermissionGranted, message)
		for _, set := range f.Sets {
			delivery.SendBestEffort(ctx, t.Events, podmeta.PermissionEvent(events.PermissionGranted, t.pod, f.Applications[set]))
		}
	}
	return message
}

func joinSets(sets []string) string {
	if len(sets) == 1 {
		return "permission set " + sets[0]
	}
	return "permission sets " + strings.Join(sets, ", ")
}

func (t *podReporter) breakerEvent(verb events.BreakerVerb, e podbreaker.Entry, reason, message string) events.Breaker {
	return events.Breaker{Verb: verb, Namespace: t.pod.Namespace, Pod: t.pod.Name, PodUID: t.pod.UID, AtUnix: e.LastRequestFailTime.Unix(),
		Denied: int64(e.Denied), Failed: int64(e.Failed), Reason: reason, Message: message}
}
