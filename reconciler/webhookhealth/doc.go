// Package webhookhealth looks whether a guard is open: whether the API server would
// let through, or could not ask, what a webhook or a policy of ours is there to
// judge. It changes nothing. What it finds it shows in a metric by reason, and
// tells in an Event when it begins and when it ends.
//
// Each process that computes runs it for its own webhooks: it is not one that
// serves them, so that it can tell that they are away.
package webhookhealth
