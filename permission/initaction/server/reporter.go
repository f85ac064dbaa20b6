package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/delivery"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podbreaker"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// minWriteInterval is the minimum time between two writes of a pod's condition.
const minWriteInterval = time.Second

// conditionReporter reports the progress of a pod's permissions as a condition, Events
// and CloudEvents. No decision depends on them, so errors are only logged.
type conditionReporter struct {
	*server
	pod *corev1.Pod
	// lastCondition is the condition of the pod, lastWrite when it was written.
	lastCondition corev1.PodCondition
	lastWrite     time.Time
	// pending: a change of the condition was skipped because of minWriteInterval.
	pending      bool
	leakReported bool
}

func newConditionReporter(s *server, pod *corev1.Pod) *conditionReporter {
	r := &conditionReporter{server: s, pod: pod}
	if c := podmeta.Condition(pod, podmeta.ConditionAuthorized); c != nil {
		r.lastCondition = *c
	}
	return r
}

// progress reports a step that may take long.
func (r *conditionReporter) progress(ctx context.Context, in Input, d Decision) {
	switch d.Action {
	case WaitForPod, Poll, WaitForBreaker, Stop:
		r.setCondition(ctx, corev1.ConditionFalse, d.Reason, waitingMessage(in, d))
	case CallAgain: // the answer has the reason
	case AcquireBreaker, Apply, ReadApplications, Prepare, RevokeOtherIPs, RecordFailure, Complete:
		// These actions usually take milliseconds, and other methods report their results.
	}
}

// unreachable reports that a call to the permission centre failed and is retried.
func (r *conditionReporter) unreachable(ctx context.Context, message string) {
	r.setCondition(ctx, corev1.ConditionFalse, podmeta.ReasonPermissionCentreUnreachable, message+"; the init-action-server retries")
}

func (r *conditionReporter) setCondition(ctx context.Context, status corev1.ConditionStatus, reason, message string) {
	now := r.Clock.Now()
	if r.lastCondition.Status == status && r.lastCondition.Reason == reason && r.lastCondition.Message == message {
		r.pending = false
		return
	}
	if status == corev1.ConditionFalse && r.lastCondition.Status == status && now.Sub(r.lastWrite) < minWriteInterval {
		r.pending = true
		return
	}
	next := corev1.PodCondition{Type: podmeta.ConditionAuthorized, Status: status, Reason: reason, Message: message, LastTransitionTime: r.lastCondition.LastTransitionTime}
	if r.lastCondition.Status != status {
		next.LastTransitionTime = metav1.NewTime(now)
	}
	if err := r.patchCondition(ctx, next); err != nil {
		logging.FromContext(ctx).Warnw("Could not write the condition of the pod", "pod", r.pod.Namespace+"/"+r.pod.Name, "error", err)
		return
	}
	r.lastCondition, r.lastWrite, r.pending = next, now, false
}

// patchCondition writes one condition.
func (r *conditionReporter) patchCondition(ctx context.Context, next corev1.PodCondition) error {
	// The condition is written even if the client disconnected, because the client will
	// retry.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), apiServerTimeout)
	defer cancel()
	return podmeta.PatchCondition(ctx, r.Kube.CoreV1(), r.pod, next)
}

func (r *conditionReporter) requested(ctx context.Context, app api.Application) {
	if app.State == api.Requested || app.State == api.Applying {
		r.Recorder.Eventf(r.pod, corev1.EventTypeNormal, podmeta.ReasonPermissionRequested, "requested permission set %s for %s, attempt %d",
			app.Set, strings.Join(app.PodIPs, ", "), app.Attempt)
		delivery.SendBestEffort(ctx, r.Events, podmeta.PermissionEvent(events.PermissionRequested, r.pod, app))
	}
	if len(app.Leaked) > 0 && !r.leakReported {
		r.leakReported = true
		r.metrics.leakedAddresses.Add(ctx, 1)
		r.Recorder.Event(r.pod, corev1.EventTypeWarning, podmeta.ReasonLeakedPermissionOnPodIP, leakedGrantMessage(app.Leaked[0]))
	}
}

func (r *conditionReporter) denied(ctx context.Context, app api.Application) {
	d := podmeta.PermissionEvent(events.PermissionDenied, r.pod, app)
	d.Reason, d.Message = podmeta.ReasonPermissionDenied, applicationMessage(app)
	delivery.SendBestEffort(ctx, r.Events, d)
}

// failed reports an attempt that was denied or failed, and the breaker if the
// attempt opened it.
func (r *conditionReporter) failed(ctx context.Context, reason, message string, d podbreaker.Decision) {
	r.lastWrite = time.Time{} // results are written without delay
	outlook := breakerMessage(d.State, d.Entry, d.Next)
	condition := message
	if outlook != "" {
		condition += "; " + outlook
	}
	r.setCondition(ctx, corev1.ConditionFalse, reason, condition)
	r.Recorder.Event(r.pod, corev1.EventTypeWarning, reason, message)
	if !d.Opened {
		return
	}
	why := podmeta.ReasonBreakerOpenFailed
	if d.State == podbreaker.OpenDenied {
		why = podmeta.ReasonBreakerOpenDenied
	}
	r.Recorder.Event(r.pod, corev1.EventTypeWarning, why, outlook)
	r.metrics.breaker(ctx, why)
	delivery.SendBestEffort(ctx, r.Events, r.breakerEvent(events.PodBreakerOpened, d.Entry, why, message))
}

// closed reports that a breaker that had been open is closed.
func (r *conditionReporter) closed(ctx context.Context, before podbreaker.Entry, user string) {
	p := r.Settings().Breaker
	if before.Denied < p.Threshold && before.Failed < p.Threshold {
		return
	}
	message := "the breaker is closed because the permissions were granted"
	if user != "" {
		message = user + " reset the breaker; permissions are requested again"
	}
	r.Recorder.Event(r.pod, corev1.EventTypeNormal, podmeta.ReasonBreakerClosed, message)
	r.metrics.breaker(ctx, podmeta.ReasonBreakerClosed)
	d := r.breakerEvent(events.PodBreakerClosed, before, podmeta.ReasonBreakerClosed, message)
	d.User = user
	delivery.SendBestEffort(ctx, r.Events, d)
}

func (r *conditionReporter) granted(ctx context.Context, in Input, took time.Duration) string {
	message := fmt.Sprintf("granted %s to %s in %s", joinSets(in.Sets), strings.Join(in.IPs, ", "), took.Round(time.Millisecond))
	r.lastWrite = time.Time{}
	if r.lastCondition.Status != corev1.ConditionTrue {
		r.setCondition(ctx, corev1.ConditionTrue, podmeta.ReasonPermissionGranted, message)
		r.Recorder.Event(r.pod, corev1.EventTypeNormal, podmeta.ReasonPermissionGranted, message)
		for _, set := range in.Sets {
			delivery.SendBestEffort(ctx, r.Events, podmeta.PermissionEvent(events.PermissionGranted, r.pod, in.Applications[set]))
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

func (r *conditionReporter) breakerEvent(verb events.PodBreakerVerb, e podbreaker.Entry, reason, message string) events.PodBreaker {
	return events.PodBreaker{Verb: verb, Namespace: r.pod.Namespace, Pod: r.pod.Name, PodUID: r.pod.UID, AtUnix: e.LastRequestFailTime.Unix(),
		Denied: int64(e.Denied), Failed: int64(e.Failed), Reason: reason, Message: message}
}
