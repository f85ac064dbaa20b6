package v1alpha1

// Reasons of PodDeletionFlowControls. Conditions, Kubernetes Events and
// CloudEvents use the same reason, so that one search finds all of them.
const (
	// ReasonDeletionDenied: a deletion would have exceeded a limit.
	ReasonDeletionDenied = "DeletionDenied"
	// ReasonDeletionWouldBeDenied: such a deletion was allowed, because the flow
	// control is in shadow mode.
	ReasonDeletionWouldBeDenied = "DeletionWouldBeDenied"
	// ReasonLimitHit: the breaker is open.
	ReasonLimitHit = "LimitHit"
	// ReasonWithinLimit: the breaker is closed.
	ReasonWithinLimit = "WithinLimit"
	// ReasonClosedManually: a person closed the breaker; earlier deletions do not
	// count anymore.
	ReasonClosedManually = "ClosedManually"
	// ReasonInvalidRule: a limit rule is invalid, so every deletion that counts is denied,
	// or only reported in shadow mode.
	ReasonInvalidRule = "InvalidRule"
	// ReasonCommittedTimeCorrected: the committed time was too far ahead and was set back.
	ReasonCommittedTimeCorrected = "CommittedTimeCorrected"
)
