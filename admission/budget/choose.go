package budget

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/apis/policy/budget"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// chargeOf returns what the action costs a budget; nil where it does not concern
// it. With live, owners are read anew.
func (a *asking) chargeOf(ctx context.Context, b *v1alpha1.PodUnavailableBudget, live bool) (*budget.Charge, error) {
	if all := b.Spec.ProtectOperations; len(all) > 0 && !slices.Contains(all, a.action.Operation) {
		return nil, nil
	}
	scope, err := budget.ScopeOf(b)
	if err != nil {
		return nil, err
	}
	charge := &budget.Charge{Operation: a.action.Operation, Try: a.dryRun, Generation: b.Generation}
	costs := b.Spec.ProtectNotReady
	for _, p := range a.action.Pods {
		concerned, err := a.concerns(ctx, scope, p, live)
		if err != nil {
			return nil, err
		}
		if !concerned {
			continue
		}
		counts := budget.Available(p)
		costs = costs || counts
		charge.Pods = append(charge.Pods, budget.Pod{
			Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion, Counts: counts,
		})
	}
	if len(charge.Pods) == 0 || !costs {
		return nil, nil
	}
	return charge, nil
}

// concerns says whether the budget has a say in what becomes of the pod.
func (a *asking) concerns(ctx context.Context, scope budget.Scope, p *corev1.Pod, live bool) (bool, error) {
	if p.DeletionTimestamp != nil || budget.Finished(p) || budget.Exempt(p) {
		return false, nil
	}
	var chain budget.Chain
	if scope.NeedsChain() || a.action.removes() {
		var err error
		if chain, err = a.Owners.Chain(ctx, p.Namespace, p.OwnerReferences, live); err != nil {
			return false, err
		}
	}
	if !scope.Covers(p, chain) || a.action.removes() && chain.Ending() {
		return false, nil
	}
	after := a.action.Relabelled
	return after == nil || !scope.Covers(after, chain), nil
}
