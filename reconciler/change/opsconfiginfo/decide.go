package opsconfiginfo

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

// Decision says whether an OpsConfigInfo counts.
type Decision struct {
	// Applied: it counts, and Message is its effect.
	Applied bool
	// Reason is one of the ReasonConfig constants.
	Reason string
	// Message says it to a person.
	Message string
}

// Decide says whether an object counts among all that there are. It agrees
// with settings.From, which every binary works by.
func Decide(c *v1alpha1.OpsConfigInfo, all []*v1alpha1.OpsConfigInfo) Decision {
	if c.Namespace != v1alpha1.SystemNamespace {
		return Decision{Reason: v1alpha1.ReasonConfigElsewhere,
			Message: "only objects of namespace " + v1alpha1.SystemNamespace + " count"}
	}
	// Admission refuses these, but an object may be older than a check, or
	// have come while the webhook was down.
	if err := c.Validate(context.Background()); err != nil {
		return Decision{Reason: v1alpha1.ReasonConfigInvalid, Message: strings.ReplaceAll(err.Error(), "\n", ": ")}
	}
	for _, e := range settings.Effective(all) {
		if e.Spec.Type == c.Spec.Type && e.Name != c.Name {
			return Decision{Reason: v1alpha1.ReasonConfigDuplicate,
				Message: fmt.Sprintf("%s has the type %s too, is older, and counts", e.Name, e.Spec.Type)}
		}
	}
	return Decision{Applied: true, Reason: v1alpha1.ReasonConfigApplied, Message: effect(c)}
}

// effect says what comes into force by an object that counts.
func effect(c *v1alpha1.OpsConfigInfo) string {
	s := settings.From([]*v1alpha1.OpsConfigInfo{c})
	var text string
	switch c.Spec.Type {
	case v1alpha1.ConfigBlocking:
		if s.Blocking {
			return "on: a failed check suspends the workload"
		}
		return "off: a failed check suspends nothing"
	case v1alpha1.ConfigShadow:
		if s.Shadow {
			return "on: guards decide, count and report; nothing is refused or held"
		}
		return "off: guards refuse and hold"
	case v1alpha1.ConfigBatch:
		if s.BatchPercent > 0 {
			return fmt.Sprintf("on: pods are judged in batches of %d%% of the replicas", s.BatchPercent)
		}
		return "off: each pod is judged on its own"
	case v1alpha1.ConfigNoVerdict:
		text = string(s.NoVerdict)
	case v1alpha1.ConfigNoVerdictPre, v1alpha1.ConfigNoVerdictPost, v1alpha1.ConfigNoVerdictOrder:
		if text = string(cmp.Or(s.NoVerdictPre, s.NoVerdictPost, s.NoVerdictOrder)); text == "" {
			text = "what no-verdict says"
		}
	case v1alpha1.ConfigBypass:
		text = string(s.Bypass)
	case v1alpha1.ConfigWaitThreshold:
		text = s.WaitThreshold.String()
	case v1alpha1.ConfigPreTimeout:
		text = s.PreTimeout.String()
	case v1alpha1.ConfigPostTimeout:
		text = s.PostTimeout.String()
	case v1alpha1.ConfigOrderTimeout:
		text = s.OrderTimeout.String()
	case v1alpha1.ConfigReleaseCheck:
		if s.ReleaseCheck > 0 {
			return fmt.Sprintf("on: the server is asked about every release and has %s to answer", s.ReleaseCheck)
		}
		return "off: the server is not asked about releases"
	case v1alpha1.ConfigReleaseCheckNoVerdict:
		text = string(s.ReleaseCheckNoVerdict)
	}
	if !c.Spec.Enable {
		return "not enabled: the default counts, " + text
	}
	return text
}
