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
	if e := settings.EffectiveInstead(c, all); e != nil {
		return Decision{Reason: v1alpha1.ReasonDuplicate,
			Message: fmt.Sprintf("%s is older, has the same type %s and takes effect instead", e.Name, e.Spec.Type)}
	}
	return Decision{Applied: true, Reason: v1alpha1.ReasonApplied, Message: effect(c, settings.FromObjects(all))}
}

// effect describes the effect of an object. all are the settings of all objects.
func effect(c *v1alpha1.OpsConfigInfo, all settings.Settings) string {
	s := settings.FromObjects([]*v1alpha1.OpsConfigInfo{c})
	if on, yes, no := switchOf(c.Spec.Type, s); yes != "" {
		effective, _, _ := switchOf(c.Spec.Type, all)
		switch {
		case !on:
			return "off: " + no
		case !effective:
			return withoutEffect(v1alpha1.ConfigShadow, "enabled") + yes
		case c.Spec.Type == v1alpha1.ConfigAutomaticRollback && !all.Blocking:
			return withoutEffect(v1alpha1.ConfigBlocking, "disabled") + yes
		}
		return "on: " + yes
	}
	if !c.Spec.Enable {
		return "not enabled: the default applies, " + valueEffect(c.Spec.Type, s)
	}
	return valueEffect(c.Spec.Type, s)
}

// switchOf reports whether a type is on, and describes both states; the texts are empty for a type
// that is neither on nor off.
func switchOf(t v1alpha1.ConfigType, s settings.Settings) (on bool, yes, no string) {
	switch t {
	case v1alpha1.ConfigBlocking:
		on, yes, no = s.Blocking, "a failed check suspends the workload", "a failed check suspends nothing"
	case v1alpha1.ConfigShadow:
		on, yes, no = s.Shadow, "the webhooks decide about releases, count and report, but deny none; the controller holds no rollout and rolls back only on request", "releases are denied and held as the other settings say"
	case v1alpha1.ConfigBatch:
		on, yes, no = s.BatchPercent > 0, fmt.Sprintf("pods are judged in batches of %d%% of the replicas", s.BatchPercent),
			"each pod is judged on its own"
	case v1alpha1.ConfigSelfHealing:
		on, yes, no = s.SelfHealing, fmt.Sprintf("a release is rolled back if one of its pods does not run for %s and none becomes Ready", s.HealAfter),
			"no release is rolled back because its pods do not run"
	case v1alpha1.ConfigAutomaticRollback:
		on, yes, no = s.AutomaticRollback, "a release that failed its check is rolled back",
			"no release is rolled back because it failed its check"
	case v1alpha1.ConfigReleaseCheck:
		on, yes, no = s.ReleaseCheckTimeout > 0,
			fmt.Sprintf("the server checks releases before they are admitted and has %s to answer", s.ReleaseCheckTimeout),
			"the server does not check releases before they are admitted"
	}
	return on, yes, no
}

// withoutEffect begins the text of a type that is on while another one takes its effect.
func withoutEffect(by v1alpha1.ConfigType, state string) string {
	return fmt.Sprintf("on, but without effect while %s is %s; otherwise ", by, state)
}

// valueEffect describes the value of a type that is neither on nor off.
func valueEffect(t v1alpha1.ConfigType, s settings.Settings) string {
	switch t {
	case v1alpha1.ConfigNoVerdict:
		return string(s.NoVerdict)
	case v1alpha1.ConfigNoVerdictPre, v1alpha1.ConfigNoVerdictPost, v1alpha1.ConfigNoVerdictOrder:
		return cmp.Or(string(cmp.Or(s.NoVerdictPre, s.NoVerdictPost, s.NoVerdictOrder)), "the value of no-verdict")
	case v1alpha1.ConfigNoVerdictContradicted:
		return string(s.NoVerdictContradicted)
	case v1alpha1.ConfigBypass:
		return string(s.Bypass)
	case v1alpha1.ConfigJudges:
		text := cmp.Or(strings.Join(s.Judges, ", "), "every judge that is configured") + " must answer"
		if keys := v1alpha1.OwnJudgesWarning(s.Judges); keys != "" {
			text += "; " + keys
		}
		return text
	case v1alpha1.ConfigWaitThreshold:
		return s.WaitThreshold.String()
	case v1alpha1.ConfigPreTimeout:
		return s.PreTimeout.String()
	case v1alpha1.ConfigPostTimeout:
		return s.PostTimeout.String()
	case v1alpha1.ConfigOrderTimeout:
		return s.OrderTimeout.String()
	case v1alpha1.ConfigSubmitTimeout:
		return s.SubmitTimeout.String()
	case v1alpha1.ConfigReleaseTimeout:
		return s.ReleaseTimeout.String()
	case v1alpha1.ConfigRevisionPods:
		if n := s.RevisionPods.Count; n > 0 {
			return fmt.Sprintf("the first %d pods of a Revision are judged", n)
		}
		return fmt.Sprintf("the pods of a Revision that start within %s of its first batch are judged", s.RevisionPods.Window)
	case v1alpha1.ConfigHistoryLimit:
		return fmt.Sprintf("at most %d saved templates per workload", s.HistoryLimit)
	case v1alpha1.ConfigReleaseCheckNoVerdict:
		return string(s.ReleaseCheckNoVerdict)
	}
	return ""
}
