package suspend

import (
	"context"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

// ShadowDecision says, while OpsConfigInfo shadow is on, what would become of a release
// without it. A workload has no suspend label then, so whether it would have
// one follows from its ChangeWorkloads. While shadow is off, it says Admit.
//
// It is asked by the webhook that stamps releases: the one that refuses is
// asked only about what carries the label.
func ShadowDecision(ctx context.Context, c admission.Change, s settings.Settings, history History) Decision {
	if !s.Shadow || c.Old == nil || !c.TemplateChanged {
		return Decision{Outcome: Admit}
	}
	in := InputOf(c)
	in.Blocking = true
	in.Suspended = in.Suspended || failed(c, history)
	return Decide(lookUp(ctx, in, c, history))
}

// failed says whether the release that the workload is at failed its check.
func failed(c admission.Change, history History) bool {
	at, known := c.OldRelease()
	if !known {
		return false
	}
	for _, r := range history.Releases(c.Old) {
		if r.Release() == at && r.Status.Phase == v1alpha1.WorkloadSuspend {
			return true
		}
	}
	return false
}
