package deletionflow

import (
	"slices"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// Cause is the suspected cause of deletions.
type Cause string

// Suspected causes.
const (
	// CauseRollout: controllers replace the pods of workloads.
	CauseRollout Cause = "rollout"
	// CauseDrain: pods are evicted from nodes.
	CauseDrain Cause = "drain"
	// CauseMassDelete: somebody deletes pods or their owners.
	CauseMassDelete Cause = "mass-delete"
)

// replacingControllers are the controllers of Kubernetes and OpenKruise that
// delete pods for rollouts and scale-downs.
var replacingControllers = []string{
	"system:serviceaccount:kube-system:replicaset-controller",
	"system:serviceaccount:kube-system:replication-controller",
	"system:serviceaccount:kube-system:statefulset-controller",
	"system:serviceaccount:kube-system:daemon-set-controller",
	"system:serviceaccount:kube-system:deployment-controller",
	"system:serviceaccount:kruise-system:kruise-manager",
	"system:kube-controller-manager",
}

// suspectedCause decides what most of the deletions look like. Evictions are a
// drain, whoever requests them; otherwise the users decide.
func suspectedCause(s *v1alpha1.DeletionShares) Cause {
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
