package budget

import (
	"k8s.io/apimachinery/pkg/types"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// outcome is the result of a charged request.
type outcome int

const (
	outcomePending  outcome = iota // not known yet
	outcomeDone                    // the request took effect, or the pod left the budget
	outcomeRefunded                // the request did not take effect
)

// deletionOutcome decides the outcome of the charge of a deletion. A pod that is
// missing in the cache counts as deleted only if the cache is as new as the charge, or
// the charge has expired.
func deletionOutcome(p *corev1.Pod, uid types.UID, charged string, observed Observed) outcome {
	switch {
	case p == nil && observed.ExistsUncovered(uid):
		return outcomeDone // not covered anymore
	case p == nil && (NotOlder(observed.ResourceVersion, ParseDeletedEntry(charged).ResourceVersion) || observed.Expired(DeletedKey(uid, charged))):
		return outcomeDone
	case p == nil:
		return outcomePending
	case !workload.PodActive(p):
		return outcomeDone
	// A pod that is only not Ready may become Ready again before its deletion.
	case observed.Expired(DeletedKey(uid, charged)):
		return outcomeRefunded
	}
	return outcomePending
}

// changeOutcome decides the outcome of the charge of an in-place change. The pod becomes
// unavailable some time after the update, or not at all. While the kubelet still has to
// replace a container, the charge does not expire.
func changeOutcome(p *corev1.Pod, name string, e Entry, observed Observed) outcome {
	expired := observed.Expired(ChangedKey(name, e))
	switch {
	case p == nil && (expired || observed.ExistsUncovered(e.UID) || NotOlder(observed.ResourceVersion, e.ResourceVersion)):
		return outcomeDone
	case p == nil:
		return outcomePending
	case !workload.PodActive(p):
		return outcomeDone
	case len(e.Effects) > 0:
		return effectsOutcome(p, e, expired)
	case !CountsAsAvailable(p) && p.ResourceVersion != e.ResourceVersion && NotOlder(p.ResourceVersion, e.ResourceVersion):
		return outcomeDone
	case expired:
		return outcomeRefunded
	}
	return outcomePending
}

// IsPendingOn reports whether the kubelet still has to act on the change of this pod. Then
// the charge does not end, whether it has expired or not.
func (e Entry) IsPendingOn(p *corev1.Pod) bool {
	return p.UID == e.UID && len(e.Effects) > 0 && stateOf(e.Effects, p) == effectPending
}

// effectsOutcome decides by the containers of the pod. A pod that is only not Ready may
// become Ready again before the kubelet replaces the container.
func effectsOutcome(p *corev1.Pod, e Entry, expired bool) outcome {
	switch stateOf(e.Effects, p) {
	case effectDone:
		return outcomeDone
	case effectPending:
		return outcomePending
	}
	if expired {
		return outcomeRefunded
	}
	return outcomePending
}
