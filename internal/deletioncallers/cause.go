package deletioncallers

import (
	"slices"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// Suspicion is what deletions look like.
type Cause string

// What deletions look like.
const (
	// Rollout: controllers replace the pods of workloads.
	CauseRollout Cause = "rollout"
	// Drain: pods are evicted, to empty nodes.
	CauseDrain Cause = "drain"
	// MassDelete: somebody deletes pods, or what they belong to.
	CauseMassDelete Cause = "mass-delete"
)

// replacers are the controllers that delete pods to replace them or to have
// fewer: those of Kubernetes and of OpenKruise.
var replacingControllers = []string{
	"system:serviceaccount:kube-system:replicaset-controller",
	"system:serviceaccount:kube-system:replication-controller",
	"system:serviceaccount:kube-system:statefulset-controller",
	"system:serviceaccount:kube-system:daemon-set-controller",
	"system:serviceaccount:kube-system:deployment-controller",
	"system:serviceaccount:kruise-system:kruise-manager",
	"system:kube-controller-manager",
}

// Suspect says what the deletions look like: what most of them are. Evictions
// are a drain whoever makes them; else it is who deletes that tells.
func SuspectedCause(s *v1alpha1.DeletionShares) Cause {
	if s == nil || s.Total == 0 {
		return CauseMassDelete
	}
	if 2*s.Evictions > s.Total {
		return CauseDrain
	}
	var replaced int64
	for _, u := range s.Users {
		if slices.Contains(replacingControllers, u.Name) {
			replaced += u.Count
		}
	}
	if 2*replaced > s.Total {
		return CauseRollout
	}
	return CauseMassDelete
}
