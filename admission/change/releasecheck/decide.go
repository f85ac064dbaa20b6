package releasecheck

import (
	"time"

	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// AnswerTTL is how long an answer that is no pass is given again instead of a new
// question: the API server and its clients try a request again at once, and
// must not hear two answers, and a program that tries for ever must not ask the
// server for ever.
const AnswerTTL = 30 * time.Second

// Input is everything that it follows from whether the server is asked.
type Input struct {
	// Enabled: OpsConfigInfo release-check is.
	Enabled bool
	// Release: the workload is created, or its template changes.
	Release bool
	// ByController: the change is our controller's.
	ByController bool
	// Gate is what the suspension of the workload makes of the change.
	Gate suspend.Outcome
	// Succeeded: the version was a Success of this workload.
	Succeeded bool
	// Recorded is the last answer about the version; nil when none is kept.
	Recorded *v1alpha1.ReleaseCheckStatus
	// Attempt is the attempt that the change becomes.
	Attempt int64
	// DryRun: the change will not be stored.
	DryRun bool
	Now    time.Time
}

// Outcome says where the answer about a change comes from.
type Outcome string

// The outcomes.
const (
	// Skip: the change is admitted, there is nothing to ask.
	Skip Outcome = "Skip"
	// Repeat: the answer that is kept is given again.
	Repeat Outcome = "Repeat"
	// Ask: the server is asked.
	Ask Outcome = "Ask"
)

// Why the server is not asked; a bounded set, they are metric labels.
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

// Decision is an outcome and, of Skip, why.
type Decision struct {
	Outcome Outcome
	// Reason is one of the constants above; empty unless Skip.
	Reason string
}

// Exempt says why a change is not asked about, as far as the change itself
// says it; empty when it does not. What it takes more than that to know,
// Decide takes into account.
func Exempt(in Input) string {
	switch {
	case !in.Enabled:
		return Disabled
	case !in.Release:
		return NotARelease
	case in.ByController:
		return ByController
	case in.Gate == suspend.Deny:
		return Suspended
	case in.Gate == suspend.Repair:
		return Repair
	case in.Gate == suspend.Rollback:
		return Rollback
	default:
		return ""
	}
}

// Decide says whether the server is asked about a change.
func Decide(in Input) Decision {
	switch why := Exempt(in); {
	case why != "":
		return Decision{Skip, why}
	case in.Succeeded:
		return Decision{Skip, Rollback}
	case in.Recorded != nil && in.Recorded.Outcome == v1alpha1.OutcomePass:
		return Decision{Skip, PassedBefore}
	case in.DryRun:
		return Decision{Skip, DryRun}
	case in.Recorded != nil && fresh(*in.Recorded, in):
		return Decision{Outcome: Repeat}
	default:
		return Decision{Outcome: Ask}
	}
}

// fresh says whether an answer is about this very attempt and not older than
// Again. One from the future is of a clock that was set back since: to believe
// it could take for ever.
func fresh(known v1alpha1.ReleaseCheckStatus, in Input) bool {
	age := in.Now.Sub(known.Time.Time)
	return known.Outcome != "" && known.Attempt == in.Attempt && age >= -clockSkew && age < AnswerTTL
}

// clockSkew is how far apart the clocks of two webhooks may be.
const clockSkew = 5 * time.Second
