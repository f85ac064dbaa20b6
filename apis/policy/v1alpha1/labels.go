package v1alpha1

// Labels and annotations, to the letter those of OpenKruise where it has them.
const (
	// CascadeLabel, with the value "true", refuses to delete an object while
	// something lives underneath it.
	DisableCascadingDeletionLabel = "policy.kruise.io/disable-cascading-deletion"
	// ProtectionLabel is the label of OpenKruise's later releases: ProtectAlways
	// or ProtectCascading.
	DeleteProtectionLabel = "policy.kruise.io/delete-protection"
	// ProtectAlways refuses every deletion.
	ProtectAlways = "Always"
	// ProtectCascading means what CascadeLabel means.
	ProtectCascading = "Cascading"

	// ShadowAnnotation, with the value "true", on a Namespace or a
	// CustomResourceDefinition that is protected: a deletion is told about and
	// not refused.
	ShadowAnnotation = "policy.breakwater.dev/shadow"
	// CountedLabel, with the value "true", on a ClusterRole gives its rules to
	// the webhook that counts the objects of a CustomResourceDefinition.
	CountCustomResourcesLabel = "policy.breakwater.dev/count-custom-resources"

	// GuardedLabel is on a namespace while it has a PodUnavailableBudget: only
	// then do requests about its pods leave the API server.
	HasBudgetLabel = "policy.breakwater.dev/guarded"
	// GuardedValue is the one value of GuardedLabel.
	HasBudgetValue = "true"
	// ClosedAnnotation on a PodDeletionFlowControl is the time, RFC 3339, at
	// which a person closed the breaker: what was let through before does not
	// count any more.
	ClosedAnnotation = "policy.breakwater.dev/closed"
	// NoProtectAnnotation, with the value "true", exempts a pod from budgets.
	// Setting it on a running pod is itself judged by them.
	NoProtectAnnotation = "pub.kruise.io/no-protect"
	// UnavailablePrefix begins the labels by which a program says that it makes
	// a pod unavailable.
	UnavailableLabelPrefix = "unavailable-pod.kruise.io/"
)

// ProbeAnnotation is on the dry run by which the controller asks every replica
// of the webhook whether it knows a budget; its value tells probes apart.
const ProbeAnnotation = "policy.breakwater.dev/probe"
