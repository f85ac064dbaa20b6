package pod

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// releases finds the releases of pods.
type releases interface {
	// ReleaseOfPod returns the workload and the release of a pod; false if they are
	// unknown or not in the cache yet.
	ReleaseOfPod(p *corev1.Pod) (v1alpha1.WorkloadRef, v1alpha1.Release, bool)
}

// inputs reads the input of Decide from caches. It is also the filter of the work
// queue, which contains only pods to label.
type inputs struct {
	// optedIn reports whether the namespace of an object is opted in.
	optedIn  func(any) bool
	releases releases
	// rollingOut reports whether the rollout of a workload is in progress.
	rollingOut func(namespace string, of v1alpha1.WorkloadRef) bool
}

// of returns the input of a pod, and its workload if the release is known.
func (f inputs) of(p *corev1.Pod) (Input, v1alpha1.WorkloadRef) {
	_, ready := workload.PodReadySince(p)
	in := Input{
		OptedIn:  f.optedIn(p),
		Deleting: p.DeletionTimestamp != nil,
		Ready:    ready,
		Labeled:  p.Labels[v1alpha1.FinishedLabel] == v1alpha1.FinishedValue,
	}
	if !in.OptedIn || !in.Ready || in.Labeled {
		return in, v1alpha1.WorkloadRef{} // decided without the release, as for most pods
	}
	// If the owner is not cached yet, it enqueues its pods when it is added to the cache: see
	// watch.
	var of v1alpha1.WorkloadRef
	of, in.Release, in.HasRelease = f.releases.ReleaseOfPod(p)
	return in, of
}

// due reports whether an object is a pod to label.
func (f inputs) due(obj any) bool {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return false
	}
	in, _ := f.of(p)
	return Decide(in).Label
}
