// Package suspend decides what may change on a suspended workload, and answers
// for vdeployment.kb.io and its twins for other kinds.
//
// A check failed, so the workload is suspended: no new release, and nobody
// takes the suspension or the hold of its roll-out away. Two updates are
// admitted all the same: a repair, once a suspension, and the way back to a
// version that was a Success. Scaling and all other metadata never come here;
// the webhook's matchConditions keep them inside the API server.
package suspend

import (
	"slices"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// MutatingWebhook is the name of the webhook that names a kind's releases.
func MutatingWebhook(kind workload.Kind) string { return "m" + domain(kind) }

// ValidatingWebhook is the name of the webhook that guards a kind's suspensions.
func ValidatingWebhook(kind workload.Kind) string { return "v" + domain(kind) }

// domain ends the names of a kind's webhooks. Kruise has a StatefulSet of its
// own: a kind that is not built in is named with its group.
func domain(kind workload.Kind) string {
	is := func(k workload.Kind) bool { return k.GroupKind() == kind.GroupKind() }
	if slices.ContainsFunc(workload.BuiltIn(), is) {
		return kind.LowerKind() + ".kb.io"
	}
	return kind.LowerKind() + "." + kind.Group + ".kb.io"
}
