package rollback

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/releasefinder"
)

// Finder finds the pods of a release in caches.
type Finder interface {
	// HasVersion reports whether a pod that a workload owns directly has a version.
	HasVersion(w *workload.Workload, p *corev1.Pod, version string) bool
	// Pods returns the pods of a release.
	Pods(w *workload.Workload, release v1alpha1.Release) ([]*corev1.Pod, error)
}

// ofRelease returns the pods of a release that are neither terminating nor on a node that is not Ready.
func (r *Reconciler) ofRelease(w *workload.Workload, release v1alpha1.Release) ([]Pod, error) {
	pods, err := r.finder.Pods(w, release)
	return r.onReadyNodes(pods), err
}

// ofTemplate returns the pods of a ReplicaSet or ControllerRevision that are neither terminating nor ended, nor on
// a node that is not Ready. A pod that was evicted says nothing about the version, and its controller does not
// count it.
func (r *Reconciler) ofTemplate(w *workload.Workload, t savedtemplate.Template) ([]Pod, error) {
	owner := w.UID
	if w.Kind.Revisions == workload.ReplicaSets {
		owner = t.UID
	}
	pods, err := releasefinder.Owned[*corev1.Pod](r.pods, owner)
	return r.onReadyNodes(slices.DeleteFunc(pods, func(p *corev1.Pod) bool {
		return workload.PodEnded(p) || owner == w.UID && !workload.PodOfRevision(p, t.Name)
	})), err
}

// onReadyNodes returns those pods that are neither terminating nor on a node that is not Ready. The state of a pod
// on such a node says nothing about the version.
func (r *Reconciler) onReadyNodes(pods []*corev1.Pod) []Pod {
	var out []Pod
	for _, p := range pods {
		if p.DeletionTimestamp == nil && !r.nodes.NotReady(p.Spec.NodeName) {
			out = append(out, podOf(p))
		}
	}
	return out
}
