package changeworkload

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/releasefinder"
)

// discountLost marks the pods of a release that are on lost nodes, and returns these nodes.
// The pods of other kinds are replaced on another node.
func (r *Reconciler) discountLost(w *workload.Workload, own []Pod) (workload.Lost, error) {
	if w.Kind.Counts != workload.CountScheduled {
		return workload.Lost{}, nil
	}
	all, err := releasefinder.Owned[*corev1.Pod](r.pods, w.UID)
	if err != nil {
		return workload.Lost{}, err
	}
	return discount(w.Replicas, all, own, r.nodes.Lost), nil
}

// discount returns the nodes that are lost and have no Ready pod, and marks their pods
// in own, which are those of the release. It discounts nothing if more than half of the
// pods are lost: that is an outage, and the few pods that are left say little about the
// version.
func discount(replicas int32, all []*corev1.Pod, own []Pod, lost func(node string) bool) workload.Lost {
	// The DaemonSet controller counts the oldest pod of a node.
	oldest := map[string]*corev1.Pod{}
	for _, p := range all {
		if o := oldest[p.Spec.NodeName]; lost(p.Spec.NodeName) && (o == nil || p.CreationTimestamp.Before(&o.CreationTimestamp)) {
			oldest[p.Spec.NodeName] = p
		}
	}
	gone := map[types.UID]bool{}
	for _, p := range oldest {
		if !workload.PodReady(p) {
			gone[p.UID] = true
		}
	}
	if 2*len(gone) > int(replicas) {
		return workload.Lost{}
	}
	out := workload.Lost{Nodes: int32(len(gone))}
	for i := range own {
		if gone[own[i].UID] {
			own[i].Lost = true
			out.Updated++
		}
	}
	return out
}
