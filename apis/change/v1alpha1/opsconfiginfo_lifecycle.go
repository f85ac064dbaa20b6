package v1alpha1

import "knative.dev/pkg/apis"

// MarkApplied sets Ready to True: the object is in effect.
func (c *OpsConfigInfo) MarkApplied(effect string) {
	c.GetConditionSet().Manage(c.GetStatus()).
		MarkTrueWithReason(apis.ConditionReady, ReasonApplied, "%s", effect)
}

// MarkNotApplied sets Ready to False: the object is not in effect.
func (c *OpsConfigInfo) MarkNotApplied(reason, message string) {
	c.GetConditionSet().Manage(c.GetStatus()).
		MarkFalse(apis.ConditionReady, reason, "%s", message)
}
