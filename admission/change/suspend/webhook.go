package suspend

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/delivery"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// History knows the releases of workloads.
type History interface {
	// Succeeded says whether the version was a Success of the workload.
	Succeeded(ctx context.Context, w *workload.Workload, version string) (bool, error)
	// Releases returns the ChangeWorkloads of the workload that are at hand.
	Releases(w *workload.Workload) []*v1alpha1.ChangeWorkload
}

// Authorizer knows what users may do.
type Authorizer interface {
	// MayBypass says whether the user may bypass suspensions in the namespace.
	MayBypass(ctx context.Context, user authenticationv1.UserInfo, namespace string) Authorization
}

// Handler answers for the validating webhook of a kind.
type Handler struct {
	Kind workload.Kind
	// Settings returns the settings in force.
	Settings func() settings.Settings
	History  History
	// Authorizer knows who may bypass.
	Authorizer Authorizer
	// Recorder writes a Kubernetes Event on the workload that was refused.
	Recorder record.EventRecorder
	// Sender sends release.denied.
	Sender events.Sender
}

var _ admission.Handler = Handler{}

// Admit implements admission.Handler.
func (g Handler) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	if req.Operation != admissionv1.Update || req.SubResource != "" {
		return admission.Allow(admission.DecisionAdmitted)
	}
	c, err := admission.ReadChange(g.Kind, req)
	if err != nil {
		return admission.Fail(err)
	}
	in := Gather(ctx, c, g.Settings(), g.History)
	d := Confirm(Decide(in), in, RecordedBypass(c) != nil)
	if NeedsAuthorization(d, in) {
		d = Authorize(d, in, c.User.Username, c.Old.Namespace, g.Authorizer.MayBypass(ctx, c.User, c.Old.Namespace))
	}
	switch {
	case d.Outcome == Deny:
		if !c.DryRun {
			g.tell(ctx, req, c, d)
		}
		return admission.Deny(d.Reason, refusal(c.Old, d.Message, Causes(c.Old, in, g.History.Releases(c.Old))))
	case d.Bypass():
		return admission.Allow(d.Reason)
	default:
		return admission.Allow(admission.DecisionAdmitted)
	}
}

// Gather completes Facts with what the objects do not say. The history is
// asked only where it decides: of a release of a suspended workload.
func Gather(ctx context.Context, c admission.Change, s settings.Settings, history History) Input {
	in := InputOf(c)
	in.Blocking = s.Blocking
	in.NeedsAuthorization = s.Bypass == v1alpha1.BypassAuthorized
	return lookUp(ctx, in, c, history)
}

// lookUp asks the history if it decides.
func lookUp(ctx context.Context, in Input, c admission.Change, history History) Input {
	if !in.Suspended || !in.TemplateChanged || in.ByController {
		return in
	}
	version, err := workload.Version(c.New.Kind, &c.New.Template)
	if err == nil {
		in.Succeeded, err = history.Succeeded(ctx, c.Old, version)
	}
	if err != nil {
		logging.FromContext(ctx).Warnw("the history of a workload is unknown", "kind", c.New.Kind.Kind, "error", err)
		in.HistoryUnknown = true
	}
	return in
}

// tell says to people and programs that a release was refused.
func (g Handler) tell(ctx context.Context, req *admissionv1.AdmissionRequest, c admission.Change, d Decision) {
	g.Recorder.Event(reference(c.Old), corev1.EventTypeWarning, d.Reason,
		fmt.Sprintf("update by %s: %s", c.User.Username, d.Message))
	delivery.SendBestEffort(ctx, g.Sender, events.ReleaseDenied{
		RequestUID: req.UID,
		Namespace:  c.Old.Namespace,
		Workload:   events.Workload{APIVersion: c.Old.Kind.GroupVersion().String(), Kind: c.Old.Kind.Kind, Name: c.Old.Name},
		User:       c.User.Username,
		Reason:     d.Reason,
		Message:    d.Message,
	})
}

// reference is what an Event is about. It is built here because an object from
// a request need not carry its kind.
func reference(w *workload.Workload) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: w.Kind.GroupVersion().String(),
		Kind:       w.Kind.Kind,
		Namespace:  w.Namespace,
		Name:       w.Name,
		UID:        w.UID,
	}
}
