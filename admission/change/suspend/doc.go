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

import (
	"slices"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// MutatingWebhook returns the name of the webhook that versions a kind's releases.
func MutatingWebhook(kind workload.Kind) string { return "m" + domain(kind) }

// ValidatingWebhook returns the name of the webhook that enforces a kind's
// suspensions.
func ValidatingWebhook(kind workload.Kind) string { return "v" + domain(kind) }

// domain returns the common suffix of the names of a kind's webhooks. It contains the
// group unless the kind is built in: OpenKruise has a StatefulSet too.
func domain(kind workload.Kind) string {
	is := func(k workload.Kind) bool { return k.GroupKind() == kind.GroupKind() }
	if slices.ContainsFunc(workload.BuiltIn(), is) {
		return kind.LowerKind() + ".kb.io"
	}
	return kind.LowerKind() + "." + kind.Group + ".kb.io"
}
