package budget

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ownedPods has the pods below one owner.
type ownedPods struct {
	// top is their topmost owner with known replicas, or the topmost of all if the
	// replicas of none are known.
	top owner
	// controllers are the owners whose replicas are added up: the Deployment of a pod, or
	// its direct controller.
	controllers map[ownerKey]owner
	// unverified is the number of existing pods whose controller's replicas are unknown,
	// or may be groups of pods. total compares unverified with the replicas.
	unverified int32
}

func newOwnedPods(top owner) *ownedPods {
	return &ownedPods{top: top, controllers: map[ownerKey]owner{}}
}

// topmostWithReplicas returns the topmost owner with known replicas, or the topmost one.
func topmostWithReplicas(chain []owner) owner {
	for i := len(chain) - 1; i >= 0; i-- {
		if chain[i].wanted != nil {
			return chain[i]
		}
	}
	return chain[len(chain)-1]
}

// add adds a pod with these owners.
func (a *ownedPods) add(chain []owner, exists bool) {
	controller := chain[0]
	// The ReplicaSets of a Deployment want more pods than the Deployment during a surge. Those of a Rollout
	// (Argo Rollouts) all count: the pods of one may get no requests, so they cannot replace those of another.
	if len(chain) > 1 && chain[1].GroupKind == (schema.GroupKind{Group: "apps", Kind: "Deployment"}) && chain[1].wanted != nil {
		controller = chain[1]
	}
	a.controllers[controller.key()] = controller
	if exists && !controller.ofPods {
		a.unverified++
	}
}

// total returns how many pods the owners want; at least the sum of what the controllers
// want, because the replicas of an owner above them may be groups of pods. If the
// number is unknown, unknown says why, and total counts existing pods. pods are counted by direct controller.
func (a *ownedPods) total(pods map[ownerKey]podCounts) (total int32, unknown string) {
	var wanted, observed int32
	for _, c := range a.controllers {
		if c.wanted != nil {
			wanted += c.wants(pods)
			observed += c.observed
		}
	}
	if a.top.wanted != nil {
		wanted, observed = max(wanted, a.top.wants(pods)), max(observed, a.top.observed)
	}
	switch {
	case a.top.wanted == nil:
		return a.unverified, a.name() + ": " + a.top.unknown
	// During a scale-down status.replicas of the scale subresource is higher than
	// spec.replicas.
	case a.unverified > max(wanted, observed):
		return max(wanted, a.unverified), fmt.Sprintf("%s: its scale subresource counts %d, but %d pods exist", a.name(), max(wanted, observed), a.unverified)
	}
	return wanted, ""
}

// name is like `Deployment.apps web`.
func (a *ownedPods) name() string { return a.top.String() + " " + a.top.name }
