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
