package v1alpha1

// Labels and annotations. Those that OpenKruise has too are spelled the same.
const (
	// DisableCascadingDeletionLabel, with the value "true", denies the deletion of
	// an object that has dependent objects.
	DisableCascadingDeletionLabel = "policy.kruise.io/disable-cascading-deletion"
	// DeleteProtectionLabel is the label of later releases of OpenKruise, with the
	// value ProtectAlways or ProtectCascading.
	DeleteProtectionLabel = "policy.kruise.io/delete-protection"
	// ProtectAlways denies every deletion, except those that follow from the deletion of
	// the workload or namespace of the object. It does not deny the eviction of a pod.
	ProtectAlways = "Always"
	// ProtectCascading is equivalent to DisableCascadingDeletionLabel.
	ProtectCascading = "Cascading"

	// ShadowAnnotation, with the value "true", puts the cascading deletion guard of
	// a Namespace or a CustomResourceDefinition into shadow mode.
	ShadowAnnotation = "policy.breakwater.dev/shadow"
	// CountCustomResourcesLabel, with the value "true", aggregates a ClusterRole
	// into that of the webhook, so that it can count custom resources.
	CountCustomResourcesLabel = "policy.breakwater.dev/count-custom-resources"

	// HasBudgetLabel is on a namespace while it has a PodUnavailableBudget, and for half a
	// minute after the last one. Excluded namespaces do not get it. The API server calls the
	// webhook for pods of namespaces with the label only. It does not say that the budget is
	// in effect: condition Guarding does.
	HasBudgetLabel = "policy.breakwater.dev/guarded"
	// HasBudgetValue is the one value of HasBudgetLabel.
	HasBudgetValue = "true"
	// ClosedAnnotation on a PodDeletionFlowControl is the time, in RFC 3339, at
	// which a person closed the breaker. Earlier deletions do not count.
	ClosedAnnotation = "policy.breakwater.dev/closed"
	// NoProtectAnnotation, with the value "true", exempts a pod from budgets.
	// Budgets also decide whether it may be set on a running pod.
	NoProtectAnnotation = "pub.kruise.io/no-protect"
	// UnavailableLabelPrefix is the prefix of labels that mark a pod as made
	// unavailable by a program.
	UnavailableLabelPrefix = "unavailable-pod.kruise.io/"
)

// ProbeAnnotation is on the dry-run update by which the controller checks that
// every replica of the webhook knows a budget. Its value identifies the probe.
const ProbeAnnotation = "policy.breakwater.dev/probe"
