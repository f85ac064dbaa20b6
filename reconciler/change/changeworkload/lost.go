package changeworkload

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/releasefinder"
)

// markLost marks the pods of a release that are on lost nodes, and returns these nodes. It does
// so only for kinds with a pod per node, such as DaemonSets, because pods of other kinds are
// replaced on another node.
func (r *Reconciler) markLost(w *workload.Workload, own []Pod) (workload.Lost, error) {
	if w.Kind.Counts != workload.CountScheduled {
		return workload.Lost{}, nil
	}
	all, err := releasefinder.Owned[*corev1.Pod](r.pods, w.UID)
	if err != nil {
		return workload.Lost{}, err
	}
	return excludeLost(w, all, own, r.nodes.Lost), nil
}

// excludeLost returns the nodes that are lost and have no Ready pod, and marks their pods
// in own, which are those of the release. It excludes nothing if more than half of the
// pods are lost: that is an outage, and the few pods that are left say little about the
// version.
//
// The DaemonSet controller does not count a lost node whose taint not-ready the pods do not
// tolerate. Its status has the number of such nodes, but not their names. So while there are
// any, excludeLost marks pods but returns no nodes.
func excludeLost(w *workload.Workload, all []*corev1.Pod, own []Pod, lost func(node string) bool) workload.Lost {
	// The DaemonSet controller counts the oldest pod of a node.
	oldest := map[string]*corev1.Pod{}
	for _, p := range all {
		node := nodeOf(p)
		if o := oldest[node]; lost(node) && (o == nil || p.CreationTimestamp.Before(&o.CreationTimestamp)) {
			oldest[node] = p
		}
	}
	lostPods := map[types.UID]bool{}
	for _, p := range oldest {
		if !workload.PodReady(p) {
			lostPods[p.UID] = true
		}
	}
	if 2*len(lostPods) > int(w.Replicas+w.Misscheduled()) {
		return workload.Lost{}
	}
	out := workload.Lost{Nodes: int32(len(lostPods))}
	for i := range own {
		if lostPods[own[i].UID] {
			own[i].Lost = true
			out.Updated++
		}
	}
	if w.Misscheduled() > 0 {
		return workload.Lost{}
	}
	return out
}

// nodeOf returns the node of a pod of a DaemonSet, also before it is scheduled: the
// controller writes it into the affinity.
func nodeOf(p *corev1.Pod) string {
	if p.Spec.NodeName != "" || p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil {
		return p.Spec.NodeName
	}
	required := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return ""
	}
	for _, term := range required.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && field.Operator == corev1.NodeSelectorOpIn && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}
