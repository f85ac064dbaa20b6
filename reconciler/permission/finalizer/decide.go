package finalizer

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// grace is how long after its deletion timestamp a pod whose node is gone is
// taken to run: the timestamp includes the time that it was given to end.
const nodeLossGrace = 30 * time.Second

// Outcome is what a pod needs.
type Outcome string

// The outcomes.
const (
	// Nothing: it needs nothing now.
	Nothing Outcome = "Nothing"
	// Protect: the finalizer is to be put on it.
	AddFinalizer Outcome = "AddFinalizer"
	// Revoke: it has ended; what was granted is to be taken back.
	Revoke Outcome = "Revoke"
	// Await: it is going, but may run yet.
	Wait Outcome = "Wait"
)

// Input is what Decide decides by.
type Input struct {
	Pod *corev1.Pod
	// NodeGone: the pod's node is not there any more, or nothing can run on it.
	NodeLost bool
	// NodeSilent: the kubelet of the pod's node does not report.
	NodeNotReady bool
	Now          time.Time
}

// Decision is what a pod needs, and when to look again.
type Decision struct {
	Outcome Outcome
	// Ended is when the pod ended, for Revoke; zero if that cannot be told.
	Ended time.Time
	// Again is when to look again, for Await.
	RecheckAt time.Time
}

// Decide returns what a pod needs. What was granted is taken back when the pod
// has ended, whether or not it is being deleted: finished Jobs and evicted pods
// release their address too. And not before: a pod that drains still needs its
// database.
func Decide(in Input) Decision {
	p := in.Pod
	going, terminal := p.DeletionTimestamp != nil, p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	switch {
	case !podmeta.HasFinalizer(p):
		if podmeta.InitContainer(p) != nil && !going && !terminal {
			return Decision{Outcome: AddFinalizer}
		}
		return Decision{Outcome: Nothing}
	case terminal:
		return Decision{Outcome: Revoke, Ended: endTime(p)}
	case !going:
		return Decision{Outcome: Nothing}
	case p.Spec.NodeName == "", allTerminated(p):
		return Decision{Outcome: Revoke, Ended: endTime(p)}
	}
	due := p.DeletionTimestamp.Add(nodeLossGrace)
	// Whoever deletes by force says that the pod does not run any more; where the
	// kubelet can be asked, its word counts.
	forced := p.DeletionGracePeriodSeconds != nil && *p.DeletionGracePeriodSeconds == 0
	if (in.NodeLost || forced && in.NodeNotReady) && !in.Now.Before(due) {
		return Decision{Outcome: Revoke, Ended: p.DeletionTimestamp.Time}
	}
	if in.Now.Before(due) {
		return Decision{Outcome: Wait, RecheckAt: due}
	}
	return Decision{Outcome: Wait, RecheckAt: in.Now.Add(nodeLossGrace / 2)}
}

// allTerminated says that no container of a pod that is going runs or will. (The
// containers of one that is not going may all have ended for a moment, and be
// restarted the next.)
func allTerminated(p *corev1.Pod) bool {
	if len(p.Status.ContainerStatuses) < len(p.Spec.Containers) || len(p.Status.ContainerStatuses) == 0 {
		return false
	}
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Terminated == nil {
			return false
		}
	}
	for _, c := range p.Status.InitContainerStatuses {
		if c.State.Running != nil { // a sidecar
			return false
		}
	}
	return true
}

// ended is when the last container ended.
func endTime(p *corev1.Pod) time.Time {
	var last time.Time
	if p.DeletionTimestamp != nil {
		last = p.DeletionTimestamp.Time
	}
	for _, all := range [][]corev1.ContainerStatus{p.Status.ContainerStatuses, p.Status.InitContainerStatuses} {
		for _, c := range all {
			if t := c.State.Terminated; t != nil && t.FinishedAt.After(last) {
				last = t.FinishedAt.Time
			}
		}
	}
	return last
}

// nodeState reads what a node says of its pods. Without a node there is none.
func nodeState(n *corev1.Node) (gone, silent bool) {
	if n == nil {
		return true, true
	}
	for _, t := range n.Spec.Taints {
		// Somebody says that the machine is off.
		gone = gone || t.Key == corev1.TaintNodeOutOfService
	}
	silent = true
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			silent = c.Status != corev1.ConditionTrue
		}
	}
	return gone, silent
}
