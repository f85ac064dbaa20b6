package pod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// releases knows the releases of pods.
type releases interface {
	// ReleaseOfPod returns the release of a pod and the workload that it is of; false
	// when nothing is known of them (yet).
	ReleaseOfPod(p *corev1.Pod) (v1alpha1.WorkloadRef, v1alpha1.Release, bool)
}

// facts gathers what Decide wants, from caches only. It is also the filter
// before the queue: of all pods of a cluster, only those that are to be
// labelled come into it.
type facts struct {
	// guarded tells objects of guarded namespaces.
	optedIn  func(any) bool
	releases releases
	// rolling says whether the roll-out of a workload is under way.
	rollingOut func(namespace string, of v1alpha1.WorkloadRef) bool
}

// of returns the input about a pod, and its workload if the release is known.
func (f facts) of(p *corev1.Pod) (Input, v1alpha1.WorkloadRef) {
	_, ready := workload.ReadySince(p)
	in := Input{
		OptedIn:  f.optedIn(p),
		Deleting: p.DeletionTimestamp != nil,
		Ready:    ready,
		Finished: p.Labels[v1alpha1.FinishedLabel] == v1alpha1.FinishedValue,
	}
	if !in.OptedIn || !in.Ready || in.Finished {
		return in, v1alpha1.WorkloadRef{} // decided, and most pods are finished
	}
	// What the caches have not seen yet brings its pods up again when it comes:
	// see NewController.
	var of v1alpha1.WorkloadRef
	of, in.Release, in.HasRelease = f.releases.ReleaseOfPod(p)
	return in, of
}

// due says whether an object is a pod that is to be labelled.
func (f facts) due(obj any) bool {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return false
	}
	in, _ := f.of(p)
	return Decide(in).Finish
}
