package budget

import (
	"cmp"
	"strings"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// inOrder returns the order of the budgets of a namespace for a request about a number of pods. Those that likely
// deny come first, so that nothing is charged to the others: a charge denies other requests until it is refunded
// and the controller has computed the budget. Those in shadow mode come last.
func inOrder(pods int32) func(a, b *v1alpha1.PodUnavailableBudget) int {
	return func(a, b *v1alpha1.PodUnavailableBudget) int {
		return cmp.Or(cmp.Compare(rank(a, pods), rank(b, pods)), strings.Compare(a.Name, b.Name))
	}
}

func rank(b *v1alpha1.PodUnavailableBudget, pods int32) int {
	switch {
	case b.Spec.Shadow:
		return 1
	case b.Status.UnavailableAllowed <= 0, b.Status.ObservedGeneration != b.Generation:
		return -2
	case b.Status.UnavailableAllowed < pods: // and perhaps charges nothing for some of them
		return -1
	default:
		return 0
	}
}
