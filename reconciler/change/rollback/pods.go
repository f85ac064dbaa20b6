package rollback

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/releasefinder"
)

// Finder finds the pods of a release in caches.
type Finder interface {
	// ReleaseOfPod returns the release of a pod, and its workload.
	ReleaseOfPod(p *corev1.Pod) (v1alpha1.WorkloadRef, v1alpha1.Release, bool)
	// Pods returns the pods of a release.
	Pods(w *workload.Workload, release v1alpha1.Release) ([]*corev1.Pod, error)
}

// ofRelease returns the pods of a release that are neither terminating nor on a node that is not Ready.
// The state of a pod on such a node says nothing about the version.
func (r *Reconciler) ofRelease(w *workload.Workload, release v1alpha1.Release) ([]Pod, error) {
	pods, err := r.finder.Pods(w, release)
	return notTerminating(slices.DeleteFunc(pods, func(p *corev1.Pod) bool { return r.nodes.NotReady(p.Spec.NodeName) })), err
}

// ofTemplate returns the pods of a ReplicaSet or ControllerRevision that are neither terminating nor ended. A pod
// that was evicted says nothing about the version, and its controller does not count it.
func ofTemplate(pods cache.Indexer, w *workload.Workload, t savedtemplate.Template) ([]Pod, error) {
	if w.Kind.Revisions == workload.ReplicaSets {
		own, err := releasefinder.Owned[*corev1.Pod](pods, t.UID)
		return active(own), err
	}
	all, err := releasefinder.Owned[*corev1.Pod](pods, w.UID)
	var own []*corev1.Pod
	for _, p := range all {
		if workload.PodOfRevision(p, t.Name) {
			own = append(own, p)
		}
	}
	return active(own), err
}

func active(pods []*corev1.Pod) []Pod {
	return notTerminating(slices.DeleteFunc(pods, workload.PodEnded))
}

func notTerminating(pods []*corev1.Pod) []Pod {
	var out []Pod
	for _, p := range pods {
		if p.DeletionTimestamp == nil {
			out = append(out, podOf(p))
		}
	}
	return out
}
