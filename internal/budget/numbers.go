package budget

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// Numbers are what a budget comes to.
type Numbers struct {
	// Total is how many pods the owners want.
	Total int32
	// Desired is how many have to be available.
	Desired int32
	// Current is how many are, without those that are charged.
	Current int32
	// Allowed is how many more may become unavailable.
	Allowed int32
}

// Tally is what the numbers follow from.
type PodCounts struct {
	// Total is the sum of the replicas of the topmost owners; an orphan is one.
	Total int32
	// Available are pods that serve and are not charged.
	Available int32
	// Charged are pods that would count as available if they were not charged.
	Charged int32
	// Excess is how many of these two there are beyond what the pods' own
	// controllers still want: the rest of a scale-down.
	Excess int32
}

// NumbersOf computes the numbers of a budget.
//
// More pods than the owners want (a surge) do not raise what may be unavailable
// above maxUnavailable. But what the pods' own controllers are about to remove
// may go, and while there are more available pods than wanted there is room for
// one at a time: or a scale-down of a kind whose numbers we do not know would
// hang on maxUnavailable 0.
func ComputeNumbers(spec v1alpha1.PodUnavailableBudgetSpec, t PodCounts) Numbers {
	n := Numbers{Total: t.Total, Desired: desired(spec, t.Total), Current: t.Available}
	n.Allowed = t.Available - n.Desired
	if spec.MaxUnavailable != nil {
		room := scaled(*spec.MaxUnavailable, t.Total) - max(t.Total-t.Available, t.Charged-t.Excess)
		if t.Available > t.Total && t.Charged == 0 {
			room = max(room, 1)
		}
		n.Allowed = min(n.Allowed, room)
	}
	n.Allowed = max(n.Allowed, 0)
	return n
}

func desired(spec v1alpha1.PodUnavailableBudgetSpec, total int32) int32 {
	switch {
	case spec.MinAvailable != nil:
		// A fixed number must not block a scale-down below it.
		return min(scaled(*spec.MinAvailable, total), total)
	case spec.MaxUnavailable != nil:
		return max(total-scaled(*spec.MaxUnavailable, total), 0)
	default: // the API server admits no such budget
		return total
	}
}

// scaled returns a number, or a per cent of the total, rounded up.
func scaled(value intstr.IntOrString, total int32) int32 {
	n, err := intstr.GetScaledValueFromIntOrPercent(&value, int(total), true)
	if err != nil || n < 0 { // the API server admits no such value
		return 0
	}
	return int32(min(n, 1<<30))
}
