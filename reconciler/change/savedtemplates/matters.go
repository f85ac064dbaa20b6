package savedtemplates

import (
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// inputFields are the fields of a ChangeWorkload that Decide uses.
type inputFields struct {
	release           v1alpha1.Release
	phase             v1alpha1.ReleasePhase
	reason            string
	savedTemplateName string
	pods              bool
	deleting          bool
}

// matters reports whether an update can change the decision. The counts of a
// suspended release change often while its pods terminate, and each reconcile
// costs an API request.
func matters(before, after any) bool {
	b, okBefore := before.(*v1alpha1.ChangeWorkload)
	a, okAfter := after.(*v1alpha1.ChangeWorkload)
	if !okBefore || !okAfter {
		return true
	}
	// A resync repairs missed events.
	return b.ResourceVersion == a.ResourceVersion || inputFieldsOf(b) != inputFieldsOf(a)
}

func inputFieldsOf(c *v1alpha1.ChangeWorkload) inputFields {
	return inputFields{
		release: c.Release(), phase: c.Status.Phase, reason: c.Status.GetCondition(apis.ConditionSucceeded).GetReason(),
		savedTemplateName: c.Status.SavedTemplateName, pods: c.Status.Counts.Pods > 0, deleting: c.DeletionTimestamp != nil,
	}
}
