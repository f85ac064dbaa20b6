package revisionhistory

import (
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// facts are what Decide takes from a ChangeWorkload.
type facts struct {
	release  v1alpha1.Release
	phase    v1alpha1.WorkloadPhase
	reason   string
	kept     string
	pods     bool
	deleting bool
}

// matters says whether a decision can follow from an update. A release that is
// suspended is counted again and again while its pods go, and each look at it
// costs a call.
func matters(before, after any) bool {
	b, okBefore := before.(*v1alpha1.ChangeWorkload)
	a, okAfter := after.(*v1alpha1.ChangeWorkload)
	if !okBefore || !okAfter {
		return true
	}
	// The informer's resync changes nothing: it is there for what was missed.
	return b.ResourceVersion == a.ResourceVersion || factsOf(b) != factsOf(a)
}

func factsOf(c *v1alpha1.ChangeWorkload) facts {
	f := facts{
		release: c.Release(), phase: c.Status.Phase, kept: c.Status.KeptAs,
		pods: c.Status.Counts.Pods > 0, deleting: c.DeletionTimestamp != nil,
	}
	if cond := c.Status.GetCondition(apis.ConditionSucceeded); cond != nil {
		f.reason = cond.Reason
	}
	return f
}
