package version

import "github.com/breakwater-dev/breakwater/apis/change/v1alpha1"

// Input is everything that the release of a workload depends on.
type Input struct {
	// Created: the request creates the workload.
	Created bool
	// TemplateChanged: the update changes the pod template.
	TemplateChanged bool
	// Readmission: our controller requests the release of an update that the
	// webhook missed.
	Readmission bool
	// Before is the release of the old object or, if Recovered, that of the newest
	// ChangeWorkload. Known is false if there is neither.
	Before v1alpha1.Release
	Known  bool
	// Recovered: the release annotations are missing, or older than the newest ChangeWorkload, and Before is
	// the release of that ChangeWorkload: the whole object was replaced, or its rollout was undone, while the
	// webhook was unreachable.
	Recovered bool
	// Missed: the workload has no release annotations, and was created after the
	// webhook was installed and the namespace opted in.
	Missed bool
	// Version is the version of the new template.
	Version string
}

// Outcomes of a decision; metric label values.
const (
	// Released: the change starts a new release.
	Released = "Released"
	// Baselined: the workload existed before its namespace opted in.
	Baselined = "Baselined"
	// Kept: the release does not change.
	Kept = "Kept"
)

// Decision is the release of a workload after the change.
type Decision struct {
	Release v1alpha1.Release
	// Outcome is Released, Baselined or Kept.
	Outcome string
}

// Decide returns the release of a workload after the change.
//
// A different version alone is not a release: a new default value in Kubernetes
// changes the version of every stored template. So the version is compared only for
// a missed change. The attempt depends on the old object, or, if Recovered, on the
// newest ChangeWorkload, so a repeated request increments it once.
func Decide(in Input) Decision {
	missed := in.Missed || (in.Readmission || in.Recovered) && in.Known && in.Before.Version != in.Version ||
		in.Recovered && in.Before.Attempt > v1alpha1.MaxAttempt // a user wrote it, and ReleaseOf does not accept it
	switch {
	case in.Created, in.TemplateChanged, missed:
		return Decision{v1alpha1.Release{Version: in.Version, Attempt: in.Before.NextAttempt()}, Released}
	case !in.Known:
		return Decision{v1alpha1.Release{Version: in.Version, Attempt: 0}, Baselined}
	default:
		return Decision{in.Before, Kept}
	}
}
