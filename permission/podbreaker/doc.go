// Package podbreaker is a circuit breaker for each pod: it decides whether an
// attempt to get the permissions of a pod may begin. It records failures in
// ConfigMap podpermission-breaker and, when it is full, in further ones.
//
//	closed -> open (denied 3 times) -> closed by a reset
//	closed -> open (failed 3 times) -> one attempt per interval -> closed by success
//
// A pod has an entry from its first failure until it succeeds or is deleted.
// Decisions are pure functions. Concurrent requests are committed in one
// compare-and-swap, so any number of replicas may decide.
package podbreaker
