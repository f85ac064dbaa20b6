package suspend

import (
	"context"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

// ShadowDecision returns the decision that would apply without shadow mode. In shadow
// mode, workloads get no suspend label, so the ChangeWorkloads show whether the
// workload would be suspended. Outside shadow mode the decision is Admit.
//
// The mutating webhook calls it: the validating webhook is called only for workloads
// with the label.
func ShadowDecision(ctx context.Context, c admission.Change, s settings.Settings, history History) Decision {
	if !s.Shadow || c.Old == nil || !c.TemplateChanged {
		return Decision{Outcome: Admit}
	}
	in := InputOf(c)
	in.Blocking = true
	in.Suspended = in.Suspended || releaseFailed(c, history)
	return Decide(withHistory(ctx, in, c, history))
}

// releaseFailed reports whether the release before the change failed its check.
func releaseFailed(c admission.Change, history History) bool {
	at, known := c.OldRelease()
	if !known {
		return false
	}
	for _, r := range history.Releases(c.Old) {
		if r.Release() == at && r.Status.Phase == v1alpha1.ReleaseSuspend {
			return true
		}
	}
	return false
}
