// Package selfcheck checks whether each guard is enforced: whether its configuration lets the
// API server call the webhook or evaluate the policy, and deny if it cannot, and whether the
// CRDs have the fields directly below spec and status of our objects. It sends no test request
// and changes nothing.
// It exposes unenforced guards as a metric by reason. It records an Event when a finding
// begins, every 30 minutes while it lasts, and when it has ended in all namespaces:
// FindingEnded, or GuardEnforced if the guard is required and has no finding left.
//
// The controllers run it, not the webhook processes, so that it also detects when the
// webhooks are down.
package selfcheck
