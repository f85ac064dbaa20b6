package podpermission

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// nodeGoneGrace: nobody reports the end of a pod whose node is gone, or whose node is not ready
// while the deletion of the pod is forced. Such a pod counts as ended this long after its deletion
// timestamp, which already includes the grace period.
const nodeGoneGrace = 30 * time.Second

// Action is what a pod needs.
type Action string

// The actions.
const (
	// Nothing: no action.
	Nothing Action = "Nothing"
	// AddFinalizer: add the finalizer.
	AddFinalizer Action = "AddFinalizer"
	// Revoke: the pod has ended; revoke its permissions.
	Revoke Action = "Revoke"
	// Wait: the pod is terminating but may still run.
	Wait Action = "Wait"
)

// Input is the input of Decide.
type Input struct {
	Pod *corev1.Pod
	// NodeGone: the pod's node does not exist or is marked out of service.
	NodeGone bool
	// NodeNotReady: the pod's node is not Ready.
	NodeNotReady bool
	Now          time.Time
}

// Decision is the action that a pod needs.
type Decision struct {
	Action Action
	// Ended is when the pod ended, for Revoke; zero if unknown.
	Ended time.Time
	// RecheckAt is when to reconcile again, for Wait.
	RecheckAt time.Time
}

// Decide returns the action that a pod needs. Permissions are revoked when the pod has ended,
// even if it is not being deleted, because the addresses of completed and evicted pods are
// also used again. They are not revoked earlier, because a draining pod still needs its
// database.
func Decide(in Input) Decision {
	p := in.Pod
	terminating, completed := p.DeletionTimestamp != nil, workload.PodEnded(p)
	switch {
	case !podmeta.HasFinalizer(p):
		if podmeta.InitContainer(p) != nil && !terminating && !completed {
			return Decision{Action: AddFinalizer}
		}
		return Decision{Action: Nothing}
	case completed:
		return Decision{Action: Revoke, Ended: endTime(p)}
	case !terminating:
		return Decision{Action: Nothing}
	case p.Spec.NodeName == "", allTerminated(p):
		return Decision{Action: Revoke, Ended: endTime(p)}
	}
	due := p.DeletionTimestamp.Add(nodeGoneGrace)
	// A forced deletion states that the pod does not run. The kubelet's report takes
	// precedence if the node is ready.
	forced := p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds == 0
	if (in.NodeGone || forced && in.NodeNotReady) && !in.Now.Before(due) {
		return Decision{Action: Revoke, Ended: p.DeletionTimestamp.Time}
	}
	if in.Now.Before(due) {
		return Decision{Action: Wait, RecheckAt: due}
	}
	return Decision{Action: Wait, RecheckAt: in.Now.Add(nodeGoneGrace / 2)}
}

// allTerminated reports whether all containers of a terminating pod have ended for
// good. (The containers of a pod that is not terminating may be restarted.)
func allTerminated(p *corev1.Pod) bool {
	if len(p.Status.ContainerStatuses) < len(p.Spec.Containers) || len(p.Status.ContainerStatuses) == 0 {
		return false
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Terminated == nil {
			return false
		}
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.EphemeralContainerStatuses) {
		if c.State.Running != nil { // a sidecar, or a container of kubectl debug
			return false
		}
	}
	return true
}

// endTime returns when the last container ended.
func endTime(p *corev1.Pod) time.Time {
	var last time.Time
	if p.DeletionTimestamp != nil {
		last = p.DeletionTimestamp.Time
	}
	for _, c := range slices.Concat(p.Status.ContainerStatuses, p.Status.InitContainerStatuses, p.Status.EphemeralContainerStatuses) {
		if t := c.State.Terminated; t != nil && t.FinishedAt.After(last) {
			last = t.FinishedAt.Time
		}
	}
	return last
}

// nodeState returns whether a node is gone, as Input says, and whether it is not ready. nil is a
// node that does not exist.
func nodeState(n *corev1.Node) (gone, notReady bool) {
	if n == nil {
		return true, true
	}
	for _, t := range n.Spec.Taints {
		// An administrator marked the node as shut down.
		gone = gone || t.Key == corev1.TaintNodeOutOfService
	}
	notReady = true
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			notReady = c.Status != corev1.ConditionTrue
		}
	}
	return gone, notReady
}
