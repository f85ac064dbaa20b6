package budget

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

// derive returns a copy of the budget with the derived status, and the time until its condition Synced changes; 0 if time does not
// change it.
func derive(b *v1alpha1.PodUnavailableBudget, observed budget.Observed, guarding apis.Condition) (*v1alpha1.PodUnavailableBudget, budget.Derivation, time.Duration) {
	next, d := b.DeepCopy(), budget.Derive(b, observed)
	s := &next.Status
	s.DeletedPods, s.UnavailablePods = nilIfEmpty(d.Deleted), nilIfEmpty(d.Unavailable)
	s.TotalReplicas, s.DesiredAvailable, s.CurrentAvailable, s.UnavailableAllowed = d.Total, d.Desired, d.Current, d.Allowed
	s.ObservedGeneration = b.Generation
	condition, wait := synced(b, d), time.Duration(0)
	if observed.CoversNothing != "" {
		condition, wait = decideNothing(s.GetCondition(v1alpha1.BudgetSynced), b.Generation != b.Status.ObservedGeneration, observed.CoversNothing, time.Now())
	}
	mark(next, condition)
	mark(next, guarding)
	return next, d, wait
}

func synced(b *v1alpha1.PodUnavailableBudget, d budget.Derivation) apis.Condition {
	if d.UnknownReplicas == "" {
		return apis.Condition{Type: v1alpha1.BudgetSynced, Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonComputed}
	}
	field, limit := "minAvailable", b.Spec.MinAvailable
	if limit == nil {
		field, limit = "maxUnavailable", b.Spec.MaxUnavailable
	}
	return apis.Condition{Type: v1alpha1.BudgetSynced, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonOwnersUnknown, Message: fmt.Sprintf(
		"spec.%s (%s) allows 0, because it depends on unknown replicas of an owner (%s); an absolute number in spec.minAvailable does not depend on them", field, limit, d.UnknownReplicas)}
}

// unsynced returns a copy of the budget whose numbers are unknown. The webhook denies
// every request that costs something.
func unsynced(b *v1alpha1.PodUnavailableBudget, reason string, err error) *v1alpha1.PodUnavailableBudget {
	next := b.DeepCopy()
	next.Status.UnavailableAllowed = 0
	next.Status.ObservedGeneration = b.Generation // otherwise the denials would name another cause
	mark(next, apis.Condition{Type: v1alpha1.BudgetSynced, Status: corev1.ConditionFalse, Reason: reason, Message: err.Error()})
	return next
}

func mark(b *v1alpha1.PodUnavailableBudget, c apis.Condition) {
	m := b.GetConditionSet().Manage(b.GetStatus())
	switch c.Status {
	case corev1.ConditionFalse:
		m.MarkFalse(c.Type, c.Reason, "%s", c.Message)
	case corev1.ConditionUnknown:
		m.MarkUnknown(c.Type, c.Reason, "%s", c.Message)
	default:
		m.MarkTrueWithReason(c.Type, c.Reason, "%s", c.Message)
	}
}

// nilIfEmpty returns nil for an empty map, as the API server does.
func nilIfEmpty[K comparable, V any](m map[K]V) map[K]V {
	if len(m) == 0 {
		return nil
	}
	return m
}
