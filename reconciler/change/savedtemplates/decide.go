package savedtemplates

import (
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Input is the input of Decide.
type Input struct {
	// Current: the release is the workload's current one.
	Current bool
	// Attempt is the release's; 0 is a baseline.
	Attempt int64
	Phase   v1alpha1.ReleasePhase
	// Reason is that of the condition Succeeded.
	Reason string
	// Pods is the number of known pods of the release.
	Pods int32
	// Saved: status.keptAs (SavedTemplateName) is set.
	Saved bool
	// Replicas is the workload's desired number of pods. Complete: all of them
	// have the current version and are available.
	Replicas int32
	Complete bool
	// VersionRecorded: the version on the workload is that of its template.
	VersionRecorded bool
	// SelectsSavedTemplates: the workload's selector matches the labels of a saved template.
	SelectsSavedTemplates bool
}

// Decision is the action for the template of a release.
type Decision string

// The decisions.
const (
	// Leave changes nothing.
	Leave Decision = "Leave"
	// Save saves the template: the version is good.
	Save Decision = "Save"
	// Delete deletes the saved template: the version failed its check.
	Delete Decision = "Delete"
	// Wait checks again later: no event reports that a baseline becomes
	// available.
	Wait Decision = "Wait"
	// Skip saves nothing and reports why: see Input.SelectsSavedTemplates.
	Skip Decision = "Skip"
)

// Decide decides what to do with the template of a release.
//
// A version is good if it succeeded with pods; a baseline, which is not judged,
// if all of its pods are available. A version that failed its check is bad,
// even if it succeeded before or is no longer the current one.
func Decide(in Input) Decision {
	switch {
	case v1alpha1.IsFailedCheckReason(in.Reason):
		return Delete
	case !in.Current:
		return Leave
	case in.Phase != v1alpha1.ReleaseSuccess || in.Saved || !in.VersionRecorded:
		return Leave
	case in.Attempt == 0 && (!in.Complete || in.Replicas == 0):
		return Wait
	case in.Attempt > 0 && in.Pods == 0:
		return Leave // it was applied at 0 replicas; its next pods will be judged
	case in.SelectsSavedTemplates:
		return Skip
	default:
		return Save
	}
}
