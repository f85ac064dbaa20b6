package releasecheck

import (
	"time"

	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// AnswerTTL is how long an answer other than a pass is reused. The API server and its
// clients retry a request immediately and must get one answer, and a client that
// retries forever must not cause a query each time.
const AnswerTTL = 30 * time.Second

// Input is everything that the decision depends on.
type Input struct {
	// Enabled: OpsConfigInfo release-check is enabled.
	Enabled bool
	// Release: the request creates the workload or changes its template.
	Release bool
	// ByController: our controller made the change.
	ByController bool
	// Suspension is the outcome of package suspend for the change.
	Suspension suspend.Outcome
	// Succeeded: the version succeeded in this workload.
	Succeeded bool
	// Stored is the stored answer about the version, or nil.
	Stored *v1alpha1.ReleaseCheckStatus
	// Attempt is the attempt of the change.
	Attempt int64
	// DryRun: the change is not stored.
	DryRun bool
	Now    time.Time
}

// Action is what the webhook does to get an answer about a change.
type Action string

// The actions.
const (
	// Skip: the change is admitted without an answer.
	Skip Action = "Skip"
	// Reuse: the stored answer is used.
	Reuse Action = "Reuse"
	// Ask: the server is asked.
	Ask Action = "Ask"
)

// Reasons of Skip; metric label values.
const (
	Disabled     = "Disabled"
	NotARelease  = "NotARelease"
	ByController = "ByController"
	Suspended    = "Suspended"
	Repair       = "Repair"
	Rollback     = "Rollback"
	PassedBefore = "PassedBefore"
	DryRun       = "DryRun"
)

// Decision is an action with its reason.
type Decision struct {
	Action Action
	// Reason is one of the constants above; empty unless Skip.
	Reason string
}

// ExemptionReason returns the reason why the server is not asked, or "". It uses neither
// the stored answer nor whether the version succeeded, so that these are read only if they
// matter.
func ExemptionReason(in Input) string {
	switch {
	case !in.Enabled:
		return Disabled
	case !in.Release:
		return NotARelease
	case in.ByController:
		return ByController
	case in.Suspension == suspend.Deny:
		return Suspended
	case in.Suspension == suspend.Repair:
		return Repair
	case in.Suspension == suspend.Rollback:
		return Rollback
	default:
		return ""
	}
}

// Decide decides whether the server is asked about a change.
func Decide(in Input) Decision {
	switch why := ExemptionReason(in); {
	case why != "":
		return Decision{Skip, why}
	case in.Succeeded:
		return Decision{Skip, Rollback}
	case in.Stored != nil && in.Stored.Outcome == v1alpha1.OutcomePass:
		return Decision{Skip, PassedBefore}
	case in.DryRun:
		return Decision{Skip, DryRun}
	case in.Stored != nil && fresh(*in.Stored, in):
		return Decision{Action: Reuse}
	default:
		return Decision{Action: Ask}
	}
}

// fresh reports whether an answer is about this attempt and younger than AnswerTTL. An
// answer from the future is not fresh: after a clock was set back it could stay valid
// for an unlimited time.
func fresh(answer v1alpha1.ReleaseCheckStatus, in Input) bool {
	age := in.Now.Sub(answer.Time.Time)
	return answer.Outcome != "" && answer.Attempt == in.Attempt && age >= -clockSkew && age < AnswerTTL
}

// clockSkew is the tolerated clock skew between two webhooks.
const clockSkew = 5 * time.Second
