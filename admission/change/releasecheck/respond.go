package releasecheck

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/delivery"
)

// Types of status.details.causes of a denial: the reason and the remedies.
const (
	CauseVerdict metav1.CauseType = "Verdict"
	CauseChange  metav1.CauseType = "Change"
	CauseRetry   metav1.CauseType = "Retry"
	CauseJudge   metav1.CauseType = "Judge"
	CauseAsk     metav1.CauseType = "Ask"
)

// inMessage is the number of remedies that the message of a denial contains: those for
// the user of the request.
const inMessage = 2

// respond applies an answer: it builds the response and reports the effect.
func (h *Handler) respond(ctx context.Context, req *admissionv1.AdmissionRequest, change admission.Change, q Query, answer v1alpha1.ReleaseCheckStatus) admission.Answer {
	s := h.Settings()
	effect := Enforce(answer.Outcome, s.ReleaseCheckNoVerdict, s.Shadow)
	text := describe(q, answer)
	if effect.Reported {
		h.report(ctx, req, change, q, effect, text)
	}
	if !effect.Allowed {
		return admission.Deny(effect.Reason, denialStatus(change, q, effect, answer, text)).WithWarnings(remedies(q, effect, answer)[inMessage:])
	}
	a := admission.Allow(effect.Reason)
	if effect.Reported {
		a = a.Warn(warning(effect, text))
	}
	return a
}

// describe returns one sentence about the answer.
func describe(q Query, answer v1alpha1.ReleaseCheckStatus) string {
	text := fmt.Sprintf("release check of %s %s, version %s", strings.ToLower(q.Kind), q.Name, q.Release.Version)
	if answer.Outcome == v1alpha1.OutcomeFail {
		text += " failed: " + answer.Message
	} else {
		text += " has no verdict: " + answer.Message
	}
	if answer.URL != "" {
		text += " (" + answer.URL + ")"
	}
	return text
}

func warning(effect Enforcement, text string) string {
	if effect.Shadowed {
		return "admitted in shadow mode, otherwise denied: " + text
	}
	return "admitted unchecked: " + text
}

// report records an Event about a release that was denied or admitted without a
// verdict, and sends a CloudEvent about a denial. The user's warning is in the
// response.
func (h *Handler) report(ctx context.Context, req *admissionv1.AdmissionRequest, change admission.Change, q Query, effect Enforcement, text string) {
	event := fmt.Sprintf("denied for %s: %s", q.User, text)
	if effect.Allowed {
		event = warning(effect, text)
	}
	h.Recorder.Event(&corev1.ObjectReference{
		APIVersion: q.APIVersion, Kind: q.Kind, Namespace: q.Namespace, Name: q.Name, UID: change.New.UID,
	}, corev1.EventTypeWarning, effect.Reason, event)
	if effect.Allowed {
		return
	}
	delivery.SendBestEffort(ctx, h.Sender, events.ReleaseDenied{
		RequestUID: req.UID,
		Namespace:  q.Namespace,
		Workload:   events.Workload{APIVersion: q.APIVersion, Kind: q.Kind, Name: q.Name},
		User:       q.User,
		Reason:     effect.Reason,
		Message:    text,
	})
}

// denialStatus returns the status of a denial. The code and retryAfterSeconds, which
// stays 0, must not request a retry: client-go would sleep and block the workers of
// other controllers.
func denialStatus(change admission.Change, q Query, effect Enforcement, answer v1alpha1.ReleaseCheckStatus, text string) metav1.Status {
	causes := remedies(q, effect, answer)
	return metav1.Status{
		Code:    http.StatusForbidden,
		Reason:  metav1.StatusReason(effect.Reason),
		Message: text + "; " + causes[0].Message + ", or " + causes[1].Message,
		Details: &metav1.StatusDetails{
			Group:  change.New.Kind.Group,
			Kind:   change.New.Kind.Resource,
			Name:   q.Name,
			UID:    change.New.UID,
			Causes: append([]metav1.StatusCause{{Type: CauseVerdict, Field: "spec.template", Message: text}}, causes...),
		},
	}
}

// remedies returns the remedies for a denial. The first inMessage are for the user of
// the request.
func remedies(q Query, effect Enforcement, answer v1alpha1.ReleaseCheckStatus) []metav1.StatusCause {
	off := v1alpha1.ConfigReleaseCheck
	if effect.Reason == v1alpha1.ReasonReleaseCheckNoVerdict {
		off = v1alpha1.ConfigReleaseCheckNoVerdict
	}
	name := v1alpha1.ReleaseCheckName(q.Kind, q.Name, q.Release.Version)
	return []metav1.StatusCause{
		{Type: CauseChange, Message: "change the pod template"},
		{Type: CauseRetry, Message: fmt.Sprintf("apply it again after %s, when the server is asked again",
			answer.Time.Add(AnswerTTL).UTC().Format(time.TimeOnly+"Z07:00"))},
		{Type: CauseJudge, Message: fmt.Sprintf("users who may patch releasechecks in namespace %s can pass this version: "+
			"kubectl patch releasecheck %s -n %[1]s --type merge -p '{\"status\":{\"outcome\":\"Pass\"}}'", q.Namespace, name)},
		{Type: CauseAsk, Message: fmt.Sprintf("operators of Breakwater (namespace %s) can change the policy for all workloads: OpsConfigInfo of type %s",
			v1alpha1.SystemNamespace, off)},
	}
}
