// Package deletionflow is the webhook of PodDeletionFlowControls: it finds out
// which pods a request would take away, counts them with every flow control
// that is in charge, and refuses what has no room. What is decided is in
// internal/deletionflow; how many requests share one write is in
// internal/groupcommit.
//
// What was counted is never given back: whoever else refuses the request, or
// never hears the answer, has used room up. An eviction that a
// PodDisruptionBudget will refuse is the exception, because kubectl drain asks
// again every five seconds: it is refused before it is counted.
package deletionflow
