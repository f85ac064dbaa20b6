// Package selfcheck checks whether each guard is enforced: whether the API server
// calls the webhook or evaluates the policy, and denies if it cannot, and whether the
// CRDs have the fields directly below spec and status of our objects. It changes nothing.
// It exposes unenforced guards as a metric by reason, and records an Event when a guard
// becomes unenforced, and when it is enforced again.
//
// The controllers run it, not the webhook processes, so that it also detects when the
// webhooks are down.
package selfcheck
