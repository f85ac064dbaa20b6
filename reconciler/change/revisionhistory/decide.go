package revisionhistory

import (
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Input is everything that a decision about a release follows from.
type Input struct {
	// Current: the workload is at this release.
	Current bool
	// Attempt is the release's; 0 is a baseline.
	Attempt int64
	Phase   v1alpha1.WorkloadPhase
	// Reason is that of the condition Succeeded.
	Reason string
	// Pods is how many pods of the release are known.
	Pods int32
	// Kept: the release says that its template is kept.
	Kept bool
	// Replicas is how many pods the workload wants; Complete says that all of
	// them are of the current version and available.
	Replicas int32
	Complete bool
	// Stamped: the template is the one whose version the workload carries.
	Stamped bool
	// Selected: the workload's selector matches what would be kept.
	Selected bool
}

// Decision is what is to be done with the template of a release.
type Decision string

// The decisions.
const (
	// Leave changes nothing.
	Leave Decision = "Leave"
	// Keep keeps the template: the version is good.
	Keep Decision = "Keep"
	// Forget takes it out of the history: the version failed its check.
	Forget Decision = "Forget"
	// Wait looks again later: nothing tells when a baseline gets well.
	Wait Decision = "Wait"
	// Refuse keeps nothing and says why: see Input.Selected.
	Refuse Decision = "Refuse"
)

// Decide says what becomes of the template of a release.
//
// A version is good when it succeeded with pods; a baseline, which nobody
// judged, when all of its pods are available. A version that failed its check
// is bad, also if it succeeded before, and also when it is not the current one
// any more.
func Decide(in Input) Decision {
	switch {
	case in.Reason == v1alpha1.ReasonCheckFailed, in.Reason == v1alpha1.ReasonOrderCheckFailed:
		return Forget
	case !in.Current:
		return Leave
	case in.Phase != v1alpha1.WorkloadSuccess || in.Kept || !in.Stamped:
		return Leave
	case in.Attempt == 0 && (!in.Complete || in.Replicas == 0):
		return Wait
	case in.Attempt > 0 && in.Pods == 0:
		return Leave // it was applied at 0 replicas; its first pods will be judged
	case in.Selected:
		return Refuse
	default:
		return Keep
	}
}
