package deletionflow

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
)

// recordEvent records a Kubernetes Event for a denial.
func (g Guard) recordEvent(a *request, f *v1alpha1.PodDeletionFlowControl, reason string, denied admission.Answer) {
	if !a.DryRun {
		g.Recorder.Event(f, corev1.EventTypeWarning, reason, denied.Response.Result.Message)
	}
}

// sendDenied publishes a denial as a CloudEvent.
func (g Guard) sendDenied(ctx context.Context, a *request, f *v1alpha1.PodDeletionFlowControl, denied admission.Answer) {
	if a.DryRun {
		return
	}
	d := events.DeletionDenied{
		DeniedBy:  events.Denier{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "PodDeletionFlowControl", Name: f.Name, UID: f.UID},
		Operation: string(v1alpha1.OperationDelete), Object: a.Namespace.Name,
		User: a.User, Reason: v1alpha1.ReasonDeletionDenied, Message: denied.Response.Result.Message,
	}
	if a.Eviction {
		d.Operation = string(v1alpha1.OperationEvict)
	}
	if a.pod != nil {
		d.Namespace, d.Object = a.pod.Namespace, a.pod.Name
	}
	g.Denials.Publish(ctx, d)
}
