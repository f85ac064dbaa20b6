package v1alpha1

// Reasons of PodUnavailableBudgets and of protection from cascading deletion.
// Conditions, Kubernetes Events and CloudEvents use the same reason, so that
// one search finds all of them.
const (
	// ReasonDisruptionDenied: a budget denied a request.
	ReasonDisruptionDenied = "DisruptionDenied"
	// ReasonDisruptionWouldBeDenied: a budget in shadow mode would have denied a
	// request.
	ReasonDisruptionWouldBeDenied = "DisruptionWouldBeDenied"
	// ReasonCascadingDeletionDenied: a deletion with dependent objects was denied.
	ReasonCascadingDeletionDenied = "CascadingDeletionDenied"
	// ReasonCascadingDeletionWouldBeDenied: such a deletion was allowed, because
	// the object is in shadow mode.
	ReasonCascadingDeletionWouldBeDenied = "CascadingDeletionWouldBeDenied"

	// ReasonAllReplicasAnswered: every replica of the webhook knows the budget.
	ReasonAllReplicasAnswered = "AllReplicasAnswered"
	// ReasonProbing: not every replica of the webhook has answered a probe yet.
	ReasonProbing = "Probing"
	// ReasonWebhookNotCalled: no replica of the webhook confirmed the budget: none is ready, none
	// was called, or none knows this version of the budget yet.
	ReasonWebhookNotCalled = "WebhookNotCalled"
	// ReasonNamespaceNeverGuarded: budgets do not apply in the namespace.
	ReasonNamespaceNeverGuarded = "NamespaceNeverGuarded"

	// ReasonComputed: the numbers follow from the present spec.
	ReasonComputed = "Computed"
	// ReasonCoversNothing: for a minute the budget has covered neither a pod nor a workload.
	ReasonCoversNothing = "CoversNothing"
	// ReasonInvalidSelector: the label selector is invalid.
	ReasonInvalidSelector = "InvalidSelector"
	// ReasonOwnersUnknown: the pods of the budget or their owners could not be read, or the
	// replicas of an owner are unknown.
	ReasonOwnersUnknown = "OwnersUnknown"
)
