// Package selfcheck checks whether each guard is enforced: whether its configuration lets the
// API server call the webhook or evaluate the policy, and deny if it cannot, and whether the
// CRDs have the fields directly below spec and status of our objects. It sends no test request
// and changes nothing.
// It exposes unenforced guards as a metric by reason, and records an Event when a finding
// begins, when it ends, and when a guard has no finding left.
//
// The controllers run it, not the webhook processes, so that it also detects when the
// webhooks are down.
package selfcheck
