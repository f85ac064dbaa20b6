package v1alpha1

import "knative.dev/pkg/apis"

// MarkApplied says that the object counts, and with what effect.
func (c *OpsConfigInfo) MarkApplied(effect string) {
	c.GetConditionSet().Manage(c.GetStatus()).
		MarkTrueWithReason(apis.ConditionReady, ReasonApplied, "%s", effect)
}

// MarkNotApplied says that the object does not count, and why.
func (c *OpsConfigInfo) MarkNotApplied(reason, message string) {
	c.GetConditionSet().Manage(c.GetStatus()).
		MarkFalse(apis.ConditionReady, reason, "%s", message)
}
