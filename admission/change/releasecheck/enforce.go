package releasecheck

import "github.com/breakwater-dev/breakwater/apis/change/v1alpha1"

// Enforcement is the effect of an answer on a change.
type Enforcement struct {
	Allowed bool
	// Reason is one of the Reason constants, and a metric label value.
	Reason string
	// Reported: an Event is recorded, and a CloudEvent is sent about a denial.
	Reported bool
	// Shadowed: without shadow mode it would be denied.
	Shadowed bool
}

// Enforce returns the effect of an answer. In shadow mode every change is allowed: a
// warning and an Event say what the server answered, and no CloudEvent is sent, because
// nothing was denied.
func Enforce(outcome v1alpha1.Outcome, policy v1alpha1.NoVerdictPolicy, shadow bool) Enforcement {
	if outcome == v1alpha1.OutcomePass {
		return Enforcement{Allowed: true, Reason: v1alpha1.ReasonReleaseCheckPassed}
	}
	reason, denied := v1alpha1.ReasonReleaseCheckNoVerdict, policy == v1alpha1.NoVerdictFail
	if outcome == v1alpha1.OutcomeFail {
		reason, denied = v1alpha1.ReasonReleaseCheckFailed, true
	}
	return Enforcement{Allowed: shadow || !denied, Reason: reason, Reported: true, Shadowed: shadow && denied}
}
