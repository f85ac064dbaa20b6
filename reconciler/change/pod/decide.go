package pod

import "github.com/breakwater-dev/breakwater/apis/change/v1alpha1"

// Input is everything that a decision about a pod follows from.
type Input struct {
	// OptedIn: the pod's namespace is guarded.
	OptedIn bool
	// Deleting: the pod has a deletionTimestamp.
	Deleting bool
	// Ready is the pod's condition. A container that crashes again and again
	// keeps it from being true, whatever the phase says.
	Ready bool
	// Finished: the pod has the label already.
	Finished bool
	// Release is that of the pod; Known is false when the pod belongs to no
	// workload, or its revision tells of none.
	Release    v1alpha1.Release
	HasRelease bool
}

// Decision says whether the pod gets the label that its release is finished.
type Decision struct {
	Finish bool
	// Why says, for a log, why not.
	Reason string
}

// Decide says whether the part of a pod in its release is finished.
func Decide(in Input) Decision {
	switch {
	case !in.OptedIn:
		return Decision{Reason: "its namespace is not guarded"}
	case in.Deleting:
		return Decision{Reason: "it is being deleted"}
	case !in.HasRelease:
		return Decision{Reason: "it belongs to no known release"}
	case !in.Release.Judged():
		return Decision{Reason: "its release is the baseline"}
	case in.Finished:
		return Decision{Reason: "it is finished already"}
	case !in.Ready:
		return Decision{Reason: "it is not ready"}
	default:
		return Decision{Finish: true}
	}
}
