package budget

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

// countingOwners counts reads of owners.
type countingOwners struct {
	chains
	reads *int
}

func (c countingOwners) Chain(ctx context.Context, namespace string, refs []metav1.OwnerReference, live bool) (budget.Chain, error) {
	*c.reads++
	return c.chains.Chain(ctx, namespace, refs, live)
}

func TestTheOwnersOfAPodThatABudgetDoesNotSelectAreNotRead(t *testing.T) {
	var budgets []*v1alpha1.PodUnavailableBudget
	for i := range 1000 {
		budgets = append(budgets, newBudget(fmt.Sprintf("web-%d", i), 1, func(b *v1alpha1.PodUnavailableBudget) {
			b.Spec.Selector.MatchLabels = map[string]string{"app": b.Name}
		}))
	}
	fx, reads := newFixture(t, living, budgets, newPod(nil)), 0
	fx.guard.Owners = countingOwners{living, &reads}
	if got := fx.ask(t, deletion(t, newPod(nil))); got.Decision != DecisionNotCharged || reads != 0 {
		t.Errorf("got %s after %d reads of owners, want none", got.Decision, reads)
	}
}
