package opsconfiginfo

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

// Decision reports whether an OpsConfigInfo takes effect.
type Decision struct {
	// Applied: it takes effect, and Message describes the effect.
	Applied bool
	// Reason is one of the reasons of OpsConfigInfo.
	Reason string
	// Message is the reason, for people.
	Message string
}

// Decide decides whether an object takes effect among all objects. It agrees
// with settings.FromObjects, which the controller and the webhook use.
func Decide(c *v1alpha1.OpsConfigInfo, all []*v1alpha1.OpsConfigInfo) Decision {
	if c.Namespace != v1alpha1.SystemNamespace {
		return Decision{Reason: v1alpha1.ReasonWrongNamespace,
			Message: "only objects of namespace " + v1alpha1.SystemNamespace + " take effect"}
	}
	// Admission denies these, but an object may predate a validation rule, or
	// the webhook was down.
	if err := c.Validate(context.Background()); err != nil {
		return Decision{Reason: v1alpha1.ReasonInvalid, Message: strings.ReplaceAll(err.Error(), "\n", ": ")}
	}
	for _, e := range settings.Effective(all) {
		if e.Spec.Type == c.Spec.Type && e.Name != c.Name {
			return Decision{Reason: v1alpha1.ReasonDuplicate,
				Message: fmt.Sprintf("%s is older, has the same type %s and takes effect instead", e.Name, e.Spec.Type)}
		}
	}
	return Decision{Applied: true, Reason: v1alpha1.ReasonApplied, Message: effect(c)}
}

// effect describes the effect of an object.
func effect(c *v1alpha1.OpsConfigInfo) string {
	s := settings.FromObjects([]*v1alpha1.OpsConfigInfo{c})
	var text string
	switch c.Spec.Type {
	case v1alpha1.ConfigBlocking:
		if s.Blocking {
			return "on: a failed check suspends the workload"
		}
		return "off: a failed check suspends nothing"
	case v1alpha1.ConfigShadow:
		if s.Shadow {
			return "on: guards of releases decide, count and report, but deny and hold nothing"
		}
		return "off: guards deny and hold"
	case v1alpha1.ConfigBatch:
		if s.BatchPercent > 0 {
			return fmt.Sprintf("on: pods are judged in batches of %d%% of the replicas", s.BatchPercent)
		}
		return "off: each pod is judged on its own"
	case v1alpha1.ConfigNoVerdict:
		text = string(s.NoVerdict)
	case v1alpha1.ConfigNoVerdictPre, v1alpha1.ConfigNoVerdictPost, v1alpha1.ConfigNoVerdictOrder:
		if text = string(cmp.Or(s.NoVerdictPre, s.NoVerdictPost, s.NoVerdictOrder)); text == "" {
			text = "the value of no-verdict"
		}
	case v1alpha1.ConfigNoVerdictContradicted:
		text = string(s.NoVerdictContradicted)
	case v1alpha1.ConfigBypass:
		text = string(s.Bypass)
	case v1alpha1.ConfigJudges:
		text = cmp.Or(strings.Join(s.Judges, ", "), "every judge that is configured") + " must answer"
	case v1alpha1.ConfigWaitThreshold:
		text = s.WaitThreshold.String()
	case v1alpha1.ConfigPreTimeout:
		text = s.PreTimeout.String()
	case v1alpha1.ConfigPostTimeout:
		text = s.PostTimeout.String()
	case v1alpha1.ConfigOrderTimeout:
		text = s.OrderTimeout.String()
	case v1alpha1.ConfigSubmitTimeout:
		text = s.SubmitTimeout.String()
	case v1alpha1.ConfigReleaseTimeout:
		text = s.ReleaseTimeout.String()
	case v1alpha1.ConfigReleaseCheck:
		if s.ReleaseCheck > 0 {
			return fmt.Sprintf("on: the server checks every release before it is admitted and has %s to answer", s.ReleaseCheck)
		}
		return "off: the server does not check releases before they are admitted"
	case v1alpha1.ConfigReleaseCheckNoVerdict:
		text = string(s.ReleaseCheckNoVerdict)
	}
	if !c.Spec.Enable {
		return "not enabled: the default applies, " + text
	}
	return text
}
