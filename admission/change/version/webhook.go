package version

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// LeftToValidatingWebhook is the decision about an update that the validating webhook
// will deny.
const LeftToValidatingWebhook = "LeftToValidatingWebhook"

// Handler is the mutating webhook of a kind. It has no side effects.
type Handler struct {
	Kind workload.Kind
	// Settings returns the current settings.
	Settings func() settings.Settings
	History  suspend.History
	Clock    clock.PassiveClock
	// Creations finds workloads whose creation the webhook missed; nil finds none.
	Creations *CreationCheck
	// Namespaces reads the setting of the namespace for a release of a Knative Service.
	Namespaces corev1client.NamespacesGetter
}

var _ admission.Handler = Handler{}

// Admit implements admission.Handler. It never denies: on an error it admits the object
// unchanged, and our controller requests a readmission.
func (h Handler) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	if req.SubResource != "" {
		return admission.Allow(admission.DecisionAdmitted)
	}
	decision, patch, warning, err := h.decide(ctx, req)
	if err != nil {
		logging.FromContext(ctx).Errorw("could not compute a version; the workload is admitted without one", "kind", h.Kind.Kind, "error", err)
		return admission.Allow(admission.DecisionError)
	}
	a := admission.AllowWith(decision, patch)
	if warning != "" {
		a = a.Warn(warning)
	}
	return a
}

func (h Handler) decide(ctx context.Context, req *admissionv1.AdmissionRequest) (decision string, patch []byte, warning string, err error) {
	c, err := admission.ReadChange(h.Kind, req)
	if err != nil {
		return "", nil, "", err
	}
	if c.New.OfKnativeService() {
		return admission.DecisionAdmitted, nil, "", nil
	}
	version, err := workload.Version(h.Kind, &c.New.Template)
	if err != nil {
		return "", nil, "", err
	}
	input, err := h.gather(ctx, c, version)
	if err != nil {
		return "", nil, "", err
	}
	d := Decide(input)
	in := suspend.Gather(ctx, c, h.Settings(), h.History)
	suspension := suspend.Decide(in)
	after, err := mutate(c, d, suspension, h.decideTraffic(ctx, c), h.Clock)
	if err != nil {
		return "", nil, "", err
	}
	if patch, err = after.Patch(c.New); err != nil {
		return "", nil, "", err
	}
	if would := suspend.ShadowDecision(ctx, c, h.Settings(), h.History); would.Outcome == suspend.Deny {
		return v1alpha1.ReasonShadow, patch, "shadow mode: otherwise, this update would have been denied: " + would.Message, nil
	}
	return countedDecision(d, suspension), patch, repairWithoutEffect(c, in), nil
}

// gather returns the Input of a change. It queries the history if the old object has no release annotations, and if they
// may be those of an earlier release: for a readmission, and if the label of the old object names another version. kubectl
// rollout undo copies the annotations. Without any release it also queries the creation time; usually the namespace has just opted in.
func (h Handler) gather(ctx context.Context, c admission.Change, version string) (Input, error) {
	in := Input{Created: c.Old == nil, TemplateChanged: c.TemplateChanged, Readmission: c.Readmission(), Version: version}
	in.Before, in.Known = c.OldRelease()
	if in.Created || in.Known && !in.Readmission && c.Old.Labels[v1alpha1.VersionKey] == in.Before.Version {
		return in, nil
	}
	for _, release := range h.History.Releases(c.Old) {
		if !in.Known || release.Spec.Attempt > in.Before.Attempt {
			in.Before = release.Release()
			in.Known, in.Recovered = true, true
		}
	}
	if in.Known || in.TemplateChanged || h.Creations == nil {
		return in, nil
	}
	var err error
	in.Missed, err = h.Creations.Missed(ctx, c.Old)
	return in, err
}

// countedDecision returns the decision for metrics: the reason of a bypass instead of
// Released, and LeftToValidatingWebhook for an update that will be denied.
func countedDecision(d Decision, suspension suspend.Decision) string {
	switch {
	case suspension.Bypass():
		return suspension.Reason
	case suspension.Outcome == suspend.Deny:
		return LeftToValidatingWebhook
	default:
		return d.Outcome
	}
}

// repairWithoutEffect returns a warning if the repair label requests no repair, or if the update does not
// change the template.
func repairWithoutEffect(c admission.Change, in suspend.Input) string {
	const label = v1alpha1.IgnoredSuspendLabel
	switch {
	case !in.Suspended:
		return ""
	case c.New.Labels[label] == v1alpha1.NoRepair:
		return fmt.Sprintf("label %s: %q requests no repair: write %q", label, v1alpha1.NoRepair, "true")
	case in.RepairRequested && !in.TemplateChanged:
		return fmt.Sprintf("%s, and this update does not change its pod template: label %s was removed without effect",
			suspend.SuspendedMessage(in.Kind, in.Name), label)
	default:
		return ""
	}
}
