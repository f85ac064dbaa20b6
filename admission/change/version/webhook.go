package version

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/utils/clock"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// LeftToValidatingWebhook is the decision about an update that the validating webhook will refuse.
const LeftToValidatingWebhook = "LeftToValidatingWebhook"

// Handler answers for the mutating webhook of a kind. It writes nothing but its
// patch.
type Handler struct {
	Kind workload.Kind
	// Settings returns the settings in force.
	Settings func() settings.Settings
	History  suspend.History
	Clock    clock.PassiveClock
	// Creations knows which workloads went past us on their creation; nil knows of none.
	Creations *CreationCheck
}

var _ admission.Handler = Handler{}

// Admit implements admission.Handler. It never refuses: what it cannot read it
// admits as it is, and our controller asks again.
func (s Handler) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	if req.SubResource != "" {
		return admission.Allow(admission.DecisionAdmitted)
	}
	decision, patch, warning, err := s.decide(ctx, req)
	if err != nil {
		logging.FromContext(ctx).Errorw("a workload is admitted without its version", "kind", s.Kind.Kind, "error", err)
		return admission.Allow(admission.DecisionError)
	}
	a := admission.AllowWith(decision, patch)
	if warning != "" {
		a.Response.Warnings = []string{warning}
	}
	return a
}

func (s Handler) decide(ctx context.Context, req *admissionv1.AdmissionRequest) (decision string, patch []byte, warning string, err error) {
	c, err := admission.ReadChange(s.Kind, req)
	if err != nil {
		return "", nil, "", err
	}
	version, err := workload.Version(s.Kind, &c.New.Template)
	if err != nil {
		return "", nil, "", err
	}
	input, err := s.gather(ctx, c, version)
	if err != nil {
		return "", nil, "", err
	}
	d := Decide(input)
	in := suspend.Gather(ctx, c, s.Settings(), s.History)
	gate := suspend.Decide(in)
	after, err := stamp(c, d.Release, gate, s.Clock)
	if err != nil {
		return "", nil, "", err
	}
	if patch, err = after.Patch(c.New); err != nil {
		return "", nil, "", err
	}
	if would := suspend.ShadowDecision(ctx, c, s.Settings(), s.History); would.Outcome == suspend.Deny {
		return v1alpha1.ReasonShadow, patch, "shadow: without it, this update would have been refused: " + would.Message, nil
	}
	return outcome(d, gate), patch, pointless(in), nil
}

// gather reads the Input from the objects. Where the old one is not stamped it
// asks what else is known: mostly, that a namespace was opted in.
func (s Handler) gather(ctx context.Context, c admission.Change, version string) (Input, error) {
	in := Input{Created: c.Old == nil, TemplateChanged: c.TemplateChanged, Readmission: c.Readmission(), Version: version}
	if in.Before, in.Known = c.OldRelease(); in.Known || in.Created {
		return in, nil
	}
	for _, release := range s.History.Releases(c.Old) {
		if !in.Known || release.Spec.Attempt > in.Before.Attempt {
			in.Before = release.Release()
			in.Known, in.Recovered = true, true
		}
	}
	if in.Known || in.TemplateChanged || s.Creations == nil {
		return in, nil
	}
	var err error
	in.Missed, err = s.Creations.Missed(ctx, c.Old)
	return in, err
}

// outcome is what is counted: why an update passed a suspension tells more
// than that it is a release, and one that the gate will refuse is none.
func outcome(d Decision, gate suspend.Decision) string {
	switch {
	case gate.Bypass():
		return gate.Reason
	case gate.Outcome == suspend.Deny:
		return LeftToValidatingWebhook
	default:
		return d.Outcome
	}
}

// pointless warns who asks for a repair and changes nothing that could be one.
func pointless(in suspend.Input) string {
	if !in.Suspended || !in.RepairRequested || in.TemplateChanged {
		return ""
	}
	return fmt.Sprintf("%s, and this update does not change its pod template: label %s was removed without effect",
		suspend.SuspendedMessage(in.Kind, in.Name), v1alpha1.IgnoredSuspendLabel)
}
