package version

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/suspend"
	"github.com/breakwater-dev/breakwater/apis/change/settings"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Webhook is the name of the mutating webhook.
const Webhook = "mdeployment.kb.io"

// LeftToGate is the decision about an update that vdeployment.kb.io will refuse.
const LeftToGate = "LeftToGate"

// Stamper answers for mdeployment.kb.io. It writes nothing but its patch.
type Stamper struct {
	// Settings returns the settings in force.
	Settings func() settings.Settings
	History  suspend.History
}

var _ admission.Handler = (*Stamper)(nil)

// Admit implements admission.Handler. It never refuses: what it cannot read it
// admits as it is, and our controller asks again.
func (s *Stamper) Admit(ctx context.Context, req *admissionv1.AdmissionRequest) admission.Answer {
	if req.SubResource != "" {
		return admission.Allow(admission.DecisionAdmitted)
	}
	decision, patch, warning, err := s.decide(ctx, req)
	if err != nil {
		logging.FromContext(ctx).Errorw("a Deployment is admitted without its version", "error", err)
		return admission.Allow(admission.DecisionError)
	}
	a := admission.AllowWith(decision, patch)
	if warning != "" {
		a.Response.Warnings = []string{warning}
	}
	return a
}

func (s *Stamper) decide(ctx context.Context, req *admissionv1.AdmissionRequest) (decision string, patch []byte, warning string, err error) {
	c, err := admission.ReadChange(req)
	if err != nil {
		return "", nil, "", err
	}
	version, err := v1alpha1.TemplateVersion(&c.New.Spec.Template)
	if err != nil {
		return "", nil, "", err
	}
	before, known := c.OldRelease()
	d := Decide(Input{
		Created:         c.Old == nil,
		TemplateChanged: c.TemplateChanged,
		Touch:           c.Touch(),
		Before:          before,
		Known:           known,
		Version:         version,
	})
	in := suspend.Gather(ctx, c, s.Settings(), s.History)
	gate := suspend.Decide(in)
	after, err := stamp(c, d.Release, gate)
	if err != nil {
		return "", nil, "", err
	}
	if patch, err = admission.Patch(c.New, after); err != nil {
		return "", nil, "", err
	}
	return outcome(d, gate), patch, pointless(in), nil
}

// outcome is what is counted: why an update passed a suspension tells more
// than that it is a release, and one that the gate will refuse is none.
func outcome(d Decision, gate suspend.Decision) string {
	switch {
	case gate.Bypass():
		return gate.Reason
	case gate.Outcome == suspend.Refuse:
		return LeftToGate
	default:
		return d.Outcome
	}
}

// pointless warns who asks for a repair and changes nothing that could be one.
func pointless(in suspend.Input) string {
	if !in.Suspended || !in.RepairAsked || in.TemplateChanged {
		return ""
	}
	return fmt.Sprintf("%s, and this update does not change its pod template: label %s was removed without effect",
		suspend.Words(in.Name), v1alpha1.IgnoredSuspendLabel)
}
