// Package podbreaker is a circuit breaker for each pod: it decides whether an
// attempt to get the permissions of a pod may begin. It records unsuccessful attempts in
// ConfigMap podpermission-breaker and, when it is full, in further ones.
//
//	closed -> open (denied 3 times) -> closed by a reset
//	closed -> open (failed 3 times) -> one attempt per interval -> closed by success
//
// A pod has an entry from its first Acquire or RecordFailure until all its permissions are
// granted or it is deleted. An attempt is unsuccessful if it was denied or failed.
// Decisions are pure functions. Concurrent requests are committed in one
// compare-and-swap, so any number of replicas may decide.
package podbreaker
