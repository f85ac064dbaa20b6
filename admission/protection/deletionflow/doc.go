// Package deletionflow is the webhook of PodDeletionFlowControls. It finds the pods
// that a request deletes, counts them with every flow control that applies, and
// denies requests beyond a limit. Package internal/deletionflow decides; package
// internal/groupcommit shares one write among concurrent requests.
//
// A count is never refunded, also if another webhook denies the request or the
// client disconnects. Evictions that a PodDisruptionBudget will deny are denied
// before they are counted, because kubectl drain retries every five seconds.
package deletionflow
