package budget

import (
	"testing"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// A charge would deny other requests until it is refunded and the controller has computed the budget.
func TestNothingIsChargedForARequestThatAnotherBudgetLikelyDenies(t *testing.T) {
	inShadow := func(b *v1alpha1.PodUnavailableBudget) { b.Spec.Shadow = true }
	for name, tc := range map[string]struct {
		a, b func(*v1alpha1.PodUnavailableBudget)
	}{
		"it allows nothing":           {nil, func(b *v1alpha1.PodUnavailableBudget) { b.Status.UnavailableAllowed = 0 }},
		"it is not synced":            {nil, func(b *v1alpha1.PodUnavailableBudget) { b.Status.ObservedGeneration = 0 }},
		"the other is in shadow mode": {inShadow, nil},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("a", 1, tc.a), newBudget("b", 1, tc.b)}, newPod(nil))
			if tc.b == nil {
				fx.useUp(t, "b")
			}
			a := fx.ask(t, deletion(t, newPod(nil)))
			if a.Response.Allowed || a.Response.Result.Details.Name != "b" {
				t.Errorf("%+v", a)
			}
			if n := fx.writes("a"); n != 0 {
				t.Errorf("%d writes of a", n)
			}
		})
	}
}

func TestTheBudgetThatAllowsLeastOfARequestForSeveralPodsDecidesFirst(t *testing.T) {
	for _, allowed := range [][2]int32{{3, 2}, {2, 0}} {
		fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("a", allowed[0], nil), newBudget("b", allowed[1], nil)}, podsOf(3, nil)...)
		if a := fx.ask(t, ofReplicaSet(t)); a.Response.Allowed || a.Response.Result.Details.Name != "b" {
			t.Errorf("%v: %+v", allowed, a)
		}
		if n := fx.writes("a"); n != 0 {
			t.Errorf("%v: %d writes of a", allowed, n)
		}
	}
}
