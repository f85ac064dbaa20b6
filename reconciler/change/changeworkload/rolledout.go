package changeworkload

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// rolledOutPods derives status.rolledOutPods. Without it, pods that start after the rollout would extend the release for
// as long as pods are added or replaced, and a release that fails after its success would claim the pods created since. A
// Knative Service has no such number: see afterFirstPods.
func rolledOutPods(in Input, d Decision) int32 {
	st := &in.ChangeWorkload.Status
	switch {
	case in.Workload.KnativeService || !isCurrent(in):
		return st.RolledOutPods
	case d.Phase == v1alpha1.ReleaseSuccess && !succeedsWithPods(in, d.Pods):
		return 0 // all of its next pods are judged
	case st.RolledOutPods == 0 && st.Phase != v1alpha1.ReleaseSuccess && (d.Phase == v1alpha1.ReleaseSuccess || rolledOut(in, d.Pods)):
		return int32(decidingPods(in))
	default:
		return st.RolledOutPods
	}
}

// rolledOut reports whether all pods have the version, as many as desired are in batches, and one has passed. So pods that
// an autoscaler adds before the first pass are judged. A newer pod may still start, because there may always be one.
func rolledOut(in Input, pods PodOutcomes) bool {
	// The status excludes a node for a moment after it is Ready again, so misscheduled nodes that are Ready count, too.
	required := requiredPods(in) + in.Workload.Misscheduled
	return in.Workload.Updated && in.Workload.Replicas > 0 && pods.AnyPassed && decidingPods(in) >= int(required)
}

// requiredPods returns how many pods must be in batches when the rollout is complete: the desired ones, and those in batches on
// nodes that are not Ready, which Replicas does not include.
func requiredPods(in Input) int32 {
	n, claimed := in.Workload.Replicas, claimedPods(in)
	for _, p := range in.Pods {
		if p.OnNotReadyNode && claimed[p.UID] {
			n++
		}
	}
	return n
}

// decidingPods returns how many pods in batches exist, or were deleted and have passed by a verdict. The others were
// deleted without a verdict, and so a further pod is judged for each of them.
func decidingPods(in Input) int {
	exists := map[types.UID]bool{}
	for _, p := range in.Pods {
		exists[p.UID] = true
	}
	n := 0
	for _, c := range in.ChangePods {
		for _, p := range c.Spec.PodInfos {
			if outcome, _ := c.OutcomeOf(p.Pod); exists[p.UID] || outcome == v1alpha1.OutcomePass {
				n++
			}
		}
	}
	return n
}

// afterRollout returns a function that reports whether a pod that is in no batch is later than the rollout.
//
// A pod on a node that is not Ready takes the place of none, also if it was Ready before: the release does not wait for it.
func afterRollout(in Input) func(Pod) bool {
	missing := int(in.ChangeWorkload.Status.RolledOutPods) - decidingPods(in)
	return func(p Pod) bool {
		if p.OnNotReadyNode {
			return true
		}
		missing--
		return missing < 0
	}
}
