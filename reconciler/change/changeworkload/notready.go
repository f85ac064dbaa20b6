package changeworkload

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/releasefinder"
)

// markOnNotReadyNodes marks the pods of a release that are on nodes that are not Ready, and returns
// these nodes. It does so only for kinds with a pod per node, such as DaemonSets, because pods of
// other kinds are replaced on another node.
func (r *Reconciler) markOnNotReadyNodes(w *workload.Workload, own []Pod) (workload.ExcludedNodes, error) {
	if w.Kind.Counts != workload.CountScheduled {
		return workload.ExcludedNodes{}, nil
	}
	all, err := releasefinder.Owned[*corev1.Pod](r.pods, w.UID)
	if err != nil {
		return workload.ExcludedNodes{}, err
	}
	return excludeNotReadyNodes(w, all, own, r.nodes.NotReady), nil
}

// excludeNotReadyNodes returns the nodes that are not Ready and have no Ready pod, and marks their
// pods in own, which are those of the release. It excludes nothing if more than half of the
// pods are on such nodes: that is an outage, and the few pods that are left say little about the
// version.
//
// The DaemonSet controller does not count a node whose taint not-ready the pods do not
// tolerate. Its status has the number of such nodes, but not their names. So while there are
// any, excludeNotReadyNodes marks the pods, and returns the nodes only as Misscheduled.
func excludeNotReadyNodes(w *workload.Workload, all []*corev1.Pod, own []Pod, notReady func(node string) bool) workload.ExcludedNodes {
	// The DaemonSet controller counts the oldest pod of a node.
	oldest := map[string]*corev1.Pod{}
	for _, p := range all {
		node := nodeOf(p)
		if o := oldest[node]; notReady(node) && (o == nil || p.CreationTimestamp.Before(&o.CreationTimestamp)) {
			oldest[node] = p
		}
	}
	excluded := map[types.UID]bool{}
	for _, p := range oldest {
		if !workload.PodReady(p) {
			excluded[p.UID] = true
		}
	}
	if 2*len(excluded) > int(w.Replicas+w.Misscheduled()) {
		return workload.ExcludedNodes{}
	}
	out := workload.ExcludedNodes{Nodes: int32(len(excluded))}
	for i := range own {
		if excluded[own[i].UID] {
			own[i].OnNotReadyNode = true
			out.Updated++
		}
	}
	if w.Misscheduled() > 0 {
		return workload.ExcludedNodes{Misscheduled: out.Nodes}
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
