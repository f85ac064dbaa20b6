package budget

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
)

// tell says to people that a request did not fit.
func (a *evaluation) recordEvent(b *v1alpha1.PodUnavailableBudget, reason string, refusal *admission.Answer) {
	if !a.dryRun && refusal.Decision == DecisionDenied {
		a.Recorder.Event(b, corev1.EventTypeWarning, reason, refusal.Response.Result.Message)
	}
}

// denied says to programs that a request was refused.
func (a *evaluation) sendDenied(ctx context.Context, b *v1alpha1.PodUnavailableBudget, refusal *admission.Answer) {
	if a.dryRun || refusal.Decision != DecisionDenied {
		return
	}
	a.Denials.Publish(ctx, events.DeletionDenied{
		Guard: events.Guard{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "PodUnavailableBudget",
			Namespace: b.Namespace, Name: b.Name, UID: b.UID},
		Operation: string(a.action.Operation), Namespace: a.req.Namespace,
		// A request with generateName has no name yet.
		Object: cmp.Or(a.req.Name, a.action.Pods[0].Name),
		User:   a.req.UserInfo.Username, Reason: v1alpha1.ReasonDisruptionDenied, Message: refusal.Response.Result.Message,
	})
}
