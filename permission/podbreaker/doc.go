// Package podbreaker decides whether the permissions of a pod may be asked for now,
// and keeps the record of what failed in ConfigMap podpermission-breaker.
//
//	closed -> open (denied 3 times): until somebody resets it
//	closed -> open (failed 3 times) -> one try per interval -> closed by success
//
// A pod has an entry only from its first failure until it succeeds or goes. The
// decisions are pure; the store commits those that come together in one
// compare-and-swap, so any number of replicas may decide.
package podbreaker
