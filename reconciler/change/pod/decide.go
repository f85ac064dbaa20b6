package pod

import "github.com/breakwater-dev/breakwater/apis/change/v1alpha1"

// Input is the input of Decide.
type Input struct {
	// OptedIn: the pod's namespace is opted in.
	OptedIn bool
	// Deleting: the pod has a deletionTimestamp.
	Deleting bool
	// Ready: condition Ready is True. In a crash loop it is not, whatever the
	// phase is.
	Ready bool
	// Labeled: the pod has the label.
	Labeled bool
	// Release is the release of the pod. HasRelease is false if the pod belongs to
	// no workload or its revision has no release.
	Release    v1alpha1.Release
	HasRelease bool
}

// Decision reports whether the pod gets the label.
type Decision struct {
	Label bool
	// Reason is why the pod does not get the label. It is for the log.
	Reason string
}

// Decide decides whether a pod is finished and not labeled yet.
func Decide(in Input) Decision {
	switch {
	case !in.OptedIn:
		return Decision{Reason: "its namespace is not opted in"}
	case in.Deleting:
		return Decision{Reason: "it is terminating"}
	case !in.HasRelease:
		return Decision{Reason: "it belongs to no known release"}
	case in.Release.IsBaseline():
		return Decision{Reason: "its release is the baseline"}
	case in.Labeled:
		return Decision{Reason: "it has the label"}
	case !in.Ready:
		return Decision{Reason: "it is not ready"}
	default:
		return Decision{Label: true}
	}
}
