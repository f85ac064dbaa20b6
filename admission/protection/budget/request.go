package budget

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// requestTo returns the request to a budget; nil if the budget does not apply to the
// action. If live is true, it reads owners from the API server instead of the cache.
func (e *evaluation) requestTo(ctx context.Context, b *v1alpha1.PodUnavailableBudget, live bool) (*budget.Request, error) {
	e.unknownSelector = ""
	onlyIfLeaves := e.action.MayOnlyLeave
	if all := b.Spec.ProtectOperations; len(all) > 0 && !slices.Contains(all, e.action.Operation) {
		if e.action.After == nil && e.action.Orphaning == "" {
			return nil, nil
		}
		onlyIfLeaves = e.action.After != nil // outside the budget the protected operations are free
	}
	scope, err := budget.ScopeOf(b)
	if err != nil {
		return nil, err
	}
	if e.action.Orphaning != "" && !scope.NeedsChain() {
		return nil, nil // a selector covers the pods afterwards, too
	}
	request := &budget.Request{Operation: e.action.Operation, DryRun: e.dryRun, Generation: b.Generation}
	costs := b.Spec.ProtectNotReady
	for _, p := range e.action.Pods {
		concerned, err := e.concerns(ctx, scope, p, live)
		if err == nil && concerned && onlyIfLeaves {
			concerned, err = e.leaves(ctx, scope, p, e.action.After)
		}
		if err != nil {
			return nil, err
		}
		if !concerned {
			continue
		}
		counts := budget.Healthy(p)
		costs = costs || counts
		request.Pods = append(request.Pods, budget.Pod{
			Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion, BecomesUnavailable: counts, Effects: e.action.Effects,
		})
	}
	if len(request.Pods) == 0 || !costs {
		return nil, nil
	}
	return request, nil
}

// concerns reports whether the budget applies to the effect of an action on the pod.
func (e *evaluation) concerns(ctx context.Context, scope budget.Scope, p *corev1.Pod, live bool) (bool, error) {
	if !workload.PodActive(p) || budget.Exempt(p) || !scope.MayCover(p) {
		return false, nil
	}
	var chain budget.Chain
	if scope.NeedsChain() || e.action.Operation.DeletesPod() {
		var err error
		if chain, err = e.Owners.Chain(ctx, p.Namespace, p.OwnerReferences, live); err != nil {
			return false, err
		}
	}
	if e.action.Operation.DeletesPod() && chain.BeingDeleted() {
		return false, nil
	}
	covered, err := e.covers(ctx, scope, p, chain, live)
	if err == nil && covered && e.action.Orphaning != "" {
		covered, err = e.covers(ctx, scope, p, chain.Below(e.action.Orphaning), live)
		return !covered, err
	}
	return covered, err
}

// covers decides whether the budget covers a pod with these owners. A pod of a Knative Service
// that is not covered is deleted at no charge, so cached traffic does not suffice for that: its
// Revision may have got traffic since. It suffices if the pod is labelled with another Service.
func (e *evaluation) covers(ctx context.Context, scope budget.Scope, p *corev1.Pod, chain budget.Chain, live bool) (bool, error) {
	service, ok := scope.KnativeService()
	if _, below := chain.Revision(); !ok || !below {
		return scope.Covers(p, chain), nil
	}
	withTraffic, err := e.Owners.RevisionsWithTraffic(ctx, p.Namespace, service, live)
	label, labelled := p.Labels[serviceLabel]
	if err == nil && !live && (!labelled || label == service) && !scope.WithTraffic(withTraffic).Covers(p, chain) {
		withTraffic, err = e.Owners.RevisionsWithTraffic(ctx, p.Namespace, service, true)
	}
	return err == nil && scope.WithTraffic(withTraffic).Covers(p, chain), err
}

// leaves decides whether an update takes a pod out of the budget: by its labels, by
// its controller, by the annotation that exempts it or by a label that marks it as unavailable.
// The deletion of a marked pod is free, and so is that of a pod whose controllers are deleted.
func (e *evaluation) leaves(ctx context.Context, scope budget.Scope, before, after *corev1.Pod) (bool, error) {
	if budget.Exempt(after) || budget.MarkedUnavailable(after.Labels) && !budget.MarkedUnavailable(before.Labels) {
		return true, nil
	}
	tie := budget.ControllerChange{SameController: controllerOf(before) == controllerOf(after), StillCovered: true}
	if !tie.SameController {
		chain, err := e.Owners.Chain(ctx, after.Namespace, after.OwnerReferences, true)
		if err != nil {
			return false, err
		}
		covered, err := e.covers(ctx, scope, after, chain, true)
		if err != nil {
			return false, err
		}
		tie.StillCovered = covered && !chain.BeingDeleted()
	}
	if !scope.NeedsChain() {
		return !tie.StillCovered || !scope.Covers(after, nil), nil
	}
	by, err := e.Owners.SelectorOf(ctx, before.Namespace, before.OwnerReferences)
	if err != nil {
		return false, err
	}
	if tie.ControllerTerminatingOrGone, tie.SelectorUnknown = by.TerminatingOrGone, by.Selector == nil; !tie.SelectorUnknown {
		tie.SelectedBefore, tie.SelectedAfter = by.Selector.Matches(labels.Set(before.Labels)), by.Selector.Matches(labels.Set(after.Labels))
	}
	e.unknownSelector = by.Unknown
	return tie.LeavesTarget(), nil
}
