package budget

import (
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// Numbers are the numeric status fields of a budget.
type Numbers struct {
	// Total is the sum of the replicas of the owners.
	Total int32
	// Desired is how many pods must be available.
	Desired int32
	// Current is how many pods are available and not charged.
	Current int32
	// Allowed is how many more may become unavailable.
	Allowed int32
}

// PodCounts are the counts that Numbers are computed from.
type PodCounts struct {
	// Total is the sum of the replicas of the topmost owners; an orphan counts as 1.
	Total int32
	// Available is the number of available pods without a charge.
	Available int32
	// Charged is the number of pods that would be available without their charge.
	Charged int32
	// ChargedUnseen is the number of charged pods that the watch does not have yet. Each may
	// replace a pod that the watch still has as available.
	ChargedUnseen int32
	// Excess is how many available and charged pods exceed the replicas of the pods' own controllers:
	// the rest of a scale-down.
	Excess int32
}

// ComputeNumbers decides how many pods must be available and how many more may
// become unavailable.
//
// More pods than the owners want (a surge) do not raise Allowed above maxUnavailable.
// Only pods in excess, which their controllers are about to delete, may be deleted in
// addition. While more pods are available than wanted, one at a time may be deleted: a
// scale-down of a kind whose excess pods are not counted would otherwise be blocked by
// maxUnavailable 0.
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
	n.Allowed = max(n.Allowed-t.ChargedUnseen, 0)
	return n
}

// NeedsReplicas reports whether the limit depends on how many pods the owners want.
// An absolute minAvailable, minAvailable 0% and maxUnavailable 100% do not: while the replicas
// are unknown, the existing pods count.
func NeedsReplicas(spec v1alpha1.PodUnavailableBudgetSpec) bool {
	limit := spec.MaxUnavailable
	if limit == nil {
		limit = spec.MinAvailable
	}
	switch {
	case limit == nil:
		return true
	case limit.Type == intstr.Int:
		return spec.MaxUnavailable != nil
	case spec.MaxUnavailable != nil:
		return limit.StrVal != "100%"
	default:
		return limit.StrVal != "0%"
	}
}

func desired(spec v1alpha1.PodUnavailableBudgetSpec, total int32) int32 {
	switch {
	case spec.MinAvailable != nil:
		// A fixed number must not block a scale-down below it.
		return min(scaled(*spec.MinAvailable, total), total)
	case spec.MaxUnavailable != nil:
		return max(total-scaled(*spec.MaxUnavailable, total), 0)
	default: // rejected by the schema
		return total
	}
}

// scaled returns a number, or a percentage of the total, rounded up.
func scaled(value intstr.IntOrString, total int32) int32 {
	n, err := intstr.GetScaledValueFromIntOrPercent(&value, int(total), true)
	if err != nil || n < 0 { // rejected by the schema
		return 0
	}
	return int32(min(n, 1<<30))
}
