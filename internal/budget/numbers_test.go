package budget

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

func maxUnavailable(s string) v1alpha1.PodUnavailableBudgetSpec {
	v := intstr.Parse(s)
	return v1alpha1.PodUnavailableBudgetSpec{MaxUnavailable: &v}
}

func minAvailable(s string) v1alpha1.PodUnavailableBudgetSpec {
	v := intstr.Parse(s)
	return v1alpha1.PodUnavailableBudgetSpec{MinAvailable: &v}
}

func TestNumbers(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spec  v1alpha1.PodUnavailableBudgetSpec
		tally PodCounts
		want  Numbers
	}{
		{"all available", maxUnavailable("2"), PodCounts{Total: 10, Available: 10}, Numbers{10, 8, 10, 2}},
		{"one charged", maxUnavailable("2"), PodCounts{Total: 10, Available: 9, Charged: 1}, Numbers{10, 8, 9, 1}},
		{"as many unavailable as allowed", maxUnavailable("2"), PodCounts{Total: 10, Available: 8}, Numbers{10, 8, 8, 0}},
		{"more unavailable than allowed", maxUnavailable("2"), PodCounts{Total: 10, Available: 3}, Numbers{10, 8, 3, 0}},
		{"a percentage is rounded up", maxUnavailable("25%"), PodCounts{Total: 10, Available: 10}, Numbers{10, 7, 10, 3}},
		{"none may be unavailable", maxUnavailable("0"), PodCounts{Total: 3, Available: 3}, Numbers{3, 3, 3, 0}},
		{"more than all may be unavailable", maxUnavailable("10"), PodCounts{Total: 3, Available: 3}, Numbers{3, 0, 3, 3}},

		{"a surge does not raise what is allowed", maxUnavailable("2"), PodCounts{Total: 10, Available: 13}, Numbers{10, 8, 13, 2}},
		{"a surge of which two are charged", maxUnavailable("2"), PodCounts{Total: 10, Available: 11, Charged: 2}, Numbers{10, 8, 11, 0}},
		{"starting surge pods do not count as unavailable", maxUnavailable("2"), PodCounts{Total: 10, Available: 10}, Numbers{10, 8, 10, 2}},
		{"more available than wanted allows one", maxUnavailable("0"), PodCounts{Total: 10, Available: 11}, Numbers{10, 10, 11, 1}},

		{"a scale-down passes", maxUnavailable("0"), PodCounts{Total: 5, Available: 10, Excess: 5}, Numbers{5, 5, 10, 5}},
		{"the rest of a scale-down passes", maxUnavailable("0"), PodCounts{Total: 5, Available: 8, Charged: 2, Excess: 5}, Numbers{5, 5, 8, 3}},
		{"a scale-down to 0 with a percentage", maxUnavailable("25%"), PodCounts{Available: 10, Excess: 10}, Numbers{0, 0, 10, 10}},
		{"a scale-down and one more", maxUnavailable("1"), PodCounts{Total: 5, Available: 10, Excess: 5}, Numbers{5, 4, 10, 6}},
		{"a scale-down beside a broken application does not pass", maxUnavailable("1"), PodCounts{Total: 15, Available: 10, Excess: 5}, Numbers{15, 14, 10, 0}},
		{"a scale-down of a broken application", maxUnavailable("1"), PodCounts{Total: 5, Available: 4}, Numbers{5, 4, 4, 0}},

		{"minAvailable", minAvailable("8"), PodCounts{Total: 10, Available: 10}, Numbers{10, 8, 10, 2}},
		{"minAvailable in per cent, rounded up", minAvailable("75%"), PodCounts{Total: 10, Available: 10}, Numbers{10, 8, 10, 2}},
		{"minAvailable above the replicas", minAvailable("20"), PodCounts{Total: 10, Available: 10}, Numbers{10, 10, 10, 0}},
		{"minAvailable never blocks a scale-down", minAvailable("8"), PodCounts{Total: 5, Available: 10}, Numbers{5, 5, 10, 5}},
		{"minAvailable, scaled to 0", minAvailable("8"), PodCounts{Available: 10}, Numbers{0, 0, 10, 10}},
		{"minAvailable 100%", minAvailable("100%"), PodCounts{Total: 10, Available: 10}, Numbers{10, 10, 10, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := ComputeNumbers(tc.spec, tc.tally); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// An owner whose replicas are unknown has lost pods that are not counted.
func TestABudgetThatNeedsUnknownReplicasAllowsNothing(t *testing.T) {
	for _, tc := range []struct {
		limit string
		spec  v1alpha1.PodUnavailableBudgetSpec
		want  int32
	}{
		{"maxUnavailable: 1", maxUnavailable("1"), 0},
		{"maxUnavailable: 50%", maxUnavailable("50%"), 0},
		{"maxUnavailable: 100%", maxUnavailable("100%"), 3},
		{"minAvailable: 50%", minAvailable("50%"), 0},
		{"minAvailable: 0%", minAvailable("0%"), 3},
		{"minAvailable: 2", minAvailable("2"), 1},
		{"minAvailable: 5", minAvailable("5"), 0},
	} {
		b := budgetWith(0)
		b.Spec = tc.spec
		d := Derive(b, Observed{Pods: []*corev1.Pod{pod("a", "1"), pod("b", "1"), pod("c", "1")}, Total: 3, UnknownReplicas: "Game web",
			ExistsUncovered: never[types.UID], Expired: never[string], KeepSettled: never[string]})
		if d.Allowed != tc.want || (d.UnknownReplicas == "") != (tc.want > 0 || tc.limit == "minAvailable: 5") {
			t.Errorf("%s: allowed %d, want %d; unknown replicas: %q", tc.limit, d.Allowed, tc.want, d.UnknownReplicas)
		}
	}
}

// For all counts, the allowed disruptions leave the desired pods.
func TestAllowedNeverGoesBelowDesired(t *testing.T) {
	for _, spec := range []v1alpha1.PodUnavailableBudgetSpec{
		maxUnavailable("0"), maxUnavailable("3"), maxUnavailable("30%"), minAvailable("4"), minAvailable("60%"),
	} {
		for total := range int32(12) {
			for available := range int32(15) {
				for excess := range int32(5) {
					n := ComputeNumbers(spec, PodCounts{Total: total, Available: available, Excess: excess})
					if n.Allowed < 0 || n.Allowed > 0 && available-n.Allowed < n.Desired {
						t.Fatalf("%d of %d available, excess %d: %+v", available, total, excess, n)
					}
				}
			}
		}
	}
}
