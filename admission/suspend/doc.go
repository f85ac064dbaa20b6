// Package suspend decides what may change on a suspended workload, and answers
// for vdeployment.kb.io and its twins for other kinds.
//
// A check failed, so the workload is suspended: no new release, and nobody
// takes the suspension or the hold of its roll-out away. Two updates are
// admitted all the same: a repair, once a suspension, and the way back to a
// version that was a Success. Scaling and all other metadata never come here;
// the webhook's matchConditions keep them inside the API server.
package suspend

import "github.com/breakwater-dev/breakwater/apis/change/workload"

// MutatingWebhook is the name of the webhook that names a kind's releases.
func MutatingWebhook(kind workload.Kind) string { return "m" + kind.Word() + ".kb.io" }

// ValidatingWebhook is the name of the webhook that guards a kind's suspensions.
func ValidatingWebhook(kind workload.Kind) string { return "v" + kind.Word() + ".kb.io" }
