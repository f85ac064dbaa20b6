package v1alpha1

// Reasons of PodDeletionFlowControls: what a person finds in a condition, an
// Event or a metric can be searched for in all.
const (
	// ReasonDeletionRefused: there was no room for a deletion.
	ReasonDeletionRefused = "DeletionRefused"
	// ReasonDeletionWouldBeRefused: there was none; the flow control is in
	// shadow mode.
	ReasonDeletionWouldBeRefused = "DeletionWouldBeRefused"
	// ReasonLimitHit: the breaker is open.
	ReasonLimitHit = "LimitHit"
	// ReasonRoom: the breaker is closed, there is room.
	ReasonRoom = "Room"
	// ReasonClosedByPerson: what went before does not count any more.
	ReasonClosedByPerson = "ClosedByPerson"
	// ReasonRuleUnreadable: a rule does not read, and nothing is let through.
	ReasonRuleUnreadable = "RuleUnreadable"
	// ReasonClockReset: the time of the last decision was far ahead.
	ReasonClockReset = "ClockReset"
)
