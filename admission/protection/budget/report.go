package budget

import (
	"cmp"
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
)

// recordEvent records a Kubernetes Event for a denial.
func (e *evaluation) recordEvent(b *v1alpha1.PodUnavailableBudget, reason string, denied *admission.Answer) {
	if !e.dryRun && denied.Decision == DecisionDenied {
		e.Recorder.Event(b, corev1.EventTypeWarning, reason, denied.Response.Result.Message)
	}
}

// sendDenied publishes a denial as a CloudEvent.
func (e *evaluation) sendDenied(ctx context.Context, b *v1alpha1.PodUnavailableBudget, denied *admission.Answer) {
	if e.dryRun || denied.Decision != DecisionDenied {
		return
	}
	// A request with generateName, and a deletecollection, has no name.
	object := cmp.Or(e.req.Name, e.action.Controller)
	if object == "" {
		object = e.action.Pods[0].Name
	}
	e.Denials.Publish(ctx, events.DeletionDenied{
		DeniedBy: events.Denier{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "PodUnavailableBudget",
			Namespace: b.Namespace, Name: b.Name, UID: b.UID},
		Operation: string(e.action.Operation), Namespace: e.req.Namespace,
		Object: object, User: e.req.UserInfo.Username, Reason: v1alpha1.ReasonDisruptionDenied, Message: denied.Response.Result.Message,
	})
}
