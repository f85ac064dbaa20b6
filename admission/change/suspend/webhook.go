package suspend

import (
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/delivery"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// History provides the releases of workloads.
type History interface {
	// Succeeded reports whether the version succeeded in the workload.
	Succeeded(ctx context.Context, w *workload.Workload, version string) (bool, error)
	// Releases returns the cached ChangeWorkloads of the workload.
	Releases(w *workload.Workload) []*v1alpha1.ChangeWorkload
}

// Authorizer checks what users may do.
type Authorizer interface {
	// MayBypass checks whether the user may bypass suspensions in the namespace.
	MayBypass(ctx context.Context, user authenticationv1.UserInfo, namespace string) Authorization
}

// Handler is the validating webhook of a kind.
type Handler struct {
	Kind workload.Kind
	// Settings returns the current settings.
	Settings func() settings.Settings
	History  History
	// Authorizer checks who may bypass.
	Authorizer Authorizer
	// Recorder records a Kubernetes Event on the workload of a denied request.
	Recorder record.EventRecorder
	// Sender sends the CloudEvent release.denied.
	Sender events.Sender
}

var _ admission.Handler = Handler{}

// Admit implements admission.Handler.
func (h Handler) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	switch {
	case req.SubResource != "":
		return admission.Allow(admission.DecisionAdmitted)
	case req.Operation == admissionv1.Delete:
		return h.admitDeletion(ctx, req)
	case req.Operation != admissionv1.Update:
		return admission.Allow(admission.DecisionAdmitted)
	}
	c, err := admission.ReadChange(h.Kind, req)
	if err != nil {
		return admission.Fail(err)
	}
	if c.New.OfKnativeService() {
		return admission.Allow(admission.DecisionAdmitted)
	}
	in := Gather(ctx, c, h.Settings(), h.History)
	return h.answer(ctx, req, c, in, Confirm(Decide(in), in, AddedBypass(c) != nil))
}

// answer checks whether the user may do what the decision needs, reports a denial and
// returns the answer.
func (h Handler) answer(ctx context.Context, req *admissionv1.AdmissionRequest, c admission.Change, in Input, d Decision) admission.Answer {
	if NeedsAuthorization(d, in) {
		d = Authorize(d, in, c.User.Username, c.Old.Namespace, h.Authorizer.MayBypass(ctx, c.User, c.Old.Namespace))
	}
	switch {
	case d.Outcome == Deny:
		if !c.DryRun {
			h.report(ctx, req, c, d)
		}
		causes := Causes(c.Old, in, h.History.Releases(c.Old))
		return admission.Deny(d.Reason, denialStatus(c.Old, d.Message, causes)).WithWarnings(causes)
	case d.Bypass():
		return admission.Allow(d.Reason)
	default:
		return admission.Allow(admission.DecisionAdmitted)
	}
}

// admitDeletion decides the deletion of a workload. A workload that is deleted and
// created again is not suspended, so a deletion requires the same verb as a repair.
func (h Handler) admitDeletion(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	old, err := workload.Read(h.Kind, req.OldObject.Raw)
	if err != nil {
		return admission.Fail(err)
	}
	c := admission.Change{Old: old, User: req.UserInfo, DryRun: ptr.Deref(req.DryRun, false)}
	in := Input{Kind: old.Kind, Name: old.Name, Suspended: v1alpha1.SuspensionOf(old.Labels) != "", Deletion: true, ByController: c.ByController()}
	return h.answer(ctx, req, c, withSettings(in, h.Settings()), Decision{Outcome: Admit})
}

// Gather returns the complete Input of a change. It queries the history only for a
// release of a suspended workload.
func Gather(ctx context.Context, c admission.Change, s settings.Settings, history History) Input {
	return withHistory(ctx, withSettings(InputOf(c), s), c, history)
}

// withSettings adds the settings.
func withSettings(in Input, s settings.Settings) Input {
	in.Blocking, in.BypassNeedsVerb = s.Blocking, s.Bypass == v1alpha1.BypassAuthorized
	return in
}

// withHistory adds the facts of the history if the decision depends on them.
func withHistory(ctx context.Context, in Input, c admission.Change, history History) Input {
	if !in.Suspended || !in.TemplateChanged || in.ByController {
		return in
	}
	version, err := workload.Version(c.New.Kind, &c.New.Template)
	if err == nil {
		in.Succeeded, err = history.Succeeded(ctx, c.Old, version)
	}
	if err != nil {
		logging.FromContext(ctx).Warnw("could not look up whether the version succeeded", "kind", c.New.Kind.Kind, "error", err)
		in.HistoryUnknown = true
	}
	return in
}

// report records an Event and sends a CloudEvent about a denied update or deletion.
func (h Handler) report(ctx context.Context, req *admissionv1.AdmissionRequest, c admission.Change, d Decision) {
	h.Recorder.Event(reference(c.Old), corev1.EventTypeWarning, d.Reason,
		fmt.Sprintf("%s by %s: %s", strings.ToLower(string(req.Operation)), c.User.Username, d.Message))
	delivery.SendBestEffort(ctx, h.Sender, events.ReleaseDenied{
		RequestUID: req.UID,
		Namespace:  c.Old.Namespace,
		Workload:   events.Workload{APIVersion: c.Old.Kind.GroupVersion().String(), Kind: c.Old.Kind.Kind, Name: c.Old.Name},
		User:       c.User.Username,
		Reason:     d.Reason,
		Message:    d.Message,
	})
}

// reference returns the subject of an Event. An object in a request may lack its
// kind, so the kind of the webhook is used.
func reference(w *workload.Workload) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: w.Kind.GroupVersion().String(),
		Kind:       w.Kind.Kind,
		Namespace:  w.Namespace,
		Name:       w.Name,
		UID:        w.UID,
	}
}
