package v1alpha1

// Reasons of conditions, Kubernetes Events and metrics: what a person finds in
// one place can be searched for in all.
const (
	// ReasonRefused: a request was refused.
	ReasonRefused = "DisruptionRefused"
	// ReasonWouldRefuse: a request would have been refused; the budget is in
	// shadow mode.
	ReasonWouldRefuse = "DisruptionWouldBeRefused"
	// ReasonCascadeRefused: a deletion that would have taken more along was refused.
	ReasonCascadeRefused = "CascadingDeletionRefused"
	// ReasonWouldRefuseCascade: it would have been refused; it is in shadow mode.
	ReasonWouldRefuseCascade = "CascadingDeletionWouldBeRefused"
	// ReasonProbing: not every replica of the webhook was heard yet.
	ReasonProbing = "Probing"
	// ReasonNotHooked: a probe came back without having passed the webhook.
	ReasonNotHooked = "NotHooked"
	// ReasonNeverGuarded: pods of the namespace are never guarded.
	ReasonNeverGuarded = "NamespaceNeverGuarded"
	// ReasonInvalidSelector: the selector is none.
	ReasonInvalidSelector = "InvalidSelector"
	// ReasonOwnersUnknown: the replicas of an owner could not be read.
	ReasonOwnersUnknown = "OwnersUnknown"
	// ReasonChargeReturned: a request was let through and nothing came of it.
	ReasonChargeReturned = "ChargeReturned"
)
