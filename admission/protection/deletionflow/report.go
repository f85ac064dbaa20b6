package deletionflow

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
)

// tell says to people that there was no room.
func (g Guard) recordEvent(a *request, f *v1alpha1.PodDeletionFlowControl, reason string, refusal admission.Answer) {
	if !a.DryRun {
		g.Recorder.Event(f, corev1.EventTypeWarning, reason, refusal.Response.Result.Message)
	}
}

// denied says to programs that a request was refused.
func (g Guard) sendDenied(ctx context.Context, a *request, f *v1alpha1.PodDeletionFlowControl, refusal admission.Answer) {
	if a.DryRun {
		return
	}
	d := events.DeletionDenied{
		Guard:     events.Guard{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "PodDeletionFlowControl", Name: f.Name, UID: f.UID},
		Operation: string(v1alpha1.OperationDelete), Object: a.Namespace.Name,
		User: a.User, Reason: v1alpha1.ReasonDeletionDenied, Message: refusal.Response.Result.Message,
	}
	if a.Eviction {
		d.Operation = string(v1alpha1.OperationEvict)
	}
	if a.pod != nil {
		d.Namespace, d.Object = a.pod.Namespace, a.pod.Name
	}
	g.Denials.Publish(ctx, d)
}
