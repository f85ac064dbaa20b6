package deletionflow

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
)

// recordEvent records a Kubernetes Event for a denial.
func (g Guard) recordEvent(r *request, f *v1alpha1.PodDeletionFlowControl, reason string, denied admission.Answer) {
	if !r.DryRun {
		g.Recorder.Event(f, corev1.EventTypeWarning, reason, denied.Response.Result.Message)
	}
}

// sendDenied publishes a denial as a CloudEvent.
func (g Guard) sendDenied(ctx context.Context, r *request, f *v1alpha1.PodDeletionFlowControl, denied admission.Answer) {
	if r.DryRun {
		return
	}
	d := events.DeletionDenied{
		DeniedBy:  events.Denier{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "PodDeletionFlowControl", Name: f.Name, UID: f.UID},
		Operation: string(v1alpha1.OperationDelete), Object: r.Namespace.Name,
		User: r.User, Reason: v1alpha1.ReasonDeletionDenied, Message: denied.Response.Result.Message,
	}
	if r.Eviction {
		d.Operation = string(v1alpha1.OperationEvict)
	}
	if r.pod != nil {
		d.Namespace, d.Object = r.pod.Namespace, r.pod.Name
	}
	g.Denials.Publish(ctx, d)
}
