// Package suspend decides which updates of a suspended workload are admitted. It
// answers for vdeployment.kb.io and the equivalent webhooks of other kinds.
//
// A workload is suspended because its check failed, or by a person. Updates that start
// a release, remove the suspension or the hold, or give a failed Revision more traffic
// are denied. A repair, once per suspension, and a rollback to a version that succeeded
// are admitted. With isBlockingUp off nothing is denied.
//
// For scaling, status, and labels and annotations other than the suspend label, the hold
// annotation and the bypass annotation, the matchConditions do not call the webhook. Owners
// are checked, too. If setting bypass is Authorized, a repair, a deletion, an added or changed
// owner and the removal of the bypass annotation need the verb bypass.
package suspend
