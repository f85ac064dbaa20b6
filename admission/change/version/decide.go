package version

import "github.com/breakwater-dev/breakwater/apis/change/v1alpha1"

// Input is everything that the release of a workload follows from.
type Input struct {
	// Created: the workload did not exist.
	Created bool
	// TemplateChanged: the update changes the pod template.
	TemplateChanged bool
	// Readmission: our controller asks to do what was left undone.
	Readmission bool
	// Before is the release that the workload was at; Known is false when it
	// was not stamped.
	Before v1alpha1.Release
	Known  bool
	// Recovered: the stamp is gone, and Before is what its newest ChangeWorkload
	// says: somebody replaced the whole object while we were not asked.
	Recovered bool
	// Missed: the workload is not stamped, and was created when its creation
	// should have been asked about.
	Missed bool
	// Version is that of the template as it is to be.
	Version string
}

// Decisions about a release; a bounded set, they are metric labels.
const (
	// Released: a new release.
	Released = "Released"
	// Baselined: what runs already when its namespace is opted in.
	Baselined = "Baselined"
	// Kept: the release stays what it was.
	Kept = "Kept"
)

// Decision is the release that a workload is at from now on.
type Decision struct {
	Release v1alpha1.Release
	// Outcome is Released, Baselined or Kept.
	Outcome string
}

// Decide says which release a workload is at.
//
// It looks at the version only when the template changed, or when our
// controller found out that a change was missed: when Kubernetes learns a new
// default, the version of every stored template changes though nobody
// released anything. The attempt follows from what was before alone, so
// however often one request is asked, it grows by one.
func Decide(in Input) Decision {
	missed := in.Missed || (in.Readmission || in.Recovered) && in.Known && in.Before.Version != in.Version
	switch {
	case in.Created, in.TemplateChanged, missed:
		return Decision{v1alpha1.Release{Version: in.Version, Attempt: in.Before.Attempt + 1}, Released}
	case !in.Known:
		return Decision{v1alpha1.Release{Version: in.Version, Attempt: 0}, Baselined}
	default:
		return Decision{in.Before, Kept}
	}
}
