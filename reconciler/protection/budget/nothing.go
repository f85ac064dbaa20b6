package budget

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

// nothingAfter is how long a budget covers nothing until that is reported: a workload may be created after its budget, or
// be replaced.
const nothingAfter = time.Minute

// coversNothing says why a budget covers neither a pod nor a workload; it is empty if it covers one, for example a workload
// with 0 replicas.
func (t *ownerTally) coversNothing(ref *v1alpha1.TargetRef, observed budget.Observed) string {
	switch {
	case len(observed.Pods)+len(observed.MayBeCovered)+len(t.owned) > 0, t.selects:
		return ""
	case ref == nil:
		return "the budget covers no pod: spec.selector selects no pod, and no pod template of a Deployment or StatefulSet; for a workload of another kind with 0 replicas, use spec.targetRef"
	case budget.GroupOf(ref.APIVersion) == knativeServiceKind.Group:
		return fmt.Sprintf("the budget covers no pod: no Knative Service %s has traffic; check spec.targetRef", ref.Name)
	case t.target.unknown == notServed:
		return fmt.Sprintf("the budget covers no pod: the API server does not serve kind %s of apiVersion %s; check spec.targetRef", ref.Kind, ref.APIVersion)
	case t.target.terminatingOrGone:
		return fmt.Sprintf("the budget covers no pod: there is no %s %s of apiVersion %s, or it terminates; check spec.targetRef", ref.Kind, ref.Name, ref.APIVersion)
	}
	return ""
}

// decideNothing decides condition Synced of a budget that covers nothing, from the condition before, whether
// the spec has changed since, and the cause. It returns how long to wait until ReasonCoversNothing; 0 if the
// condition has it.
func decideNothing(was *apis.Condition, changed bool, cause string, now time.Time) (apis.Condition, time.Duration) {
	c := apis.Condition{Type: v1alpha1.BudgetSynced, Status: corev1.ConditionTrue, Reason: v1alpha1.ReasonComputed, Message: cause}
	if was == nil || was.Message != cause && (changed || was.Reason != v1alpha1.ReasonCoversNothing) {
		return c, nothingAfter
	}
	wait := was.LastTransitionTime.Inner.Add(nothingAfter).Sub(now)
	if was.Reason != v1alpha1.ReasonCoversNothing && wait > 0 {
		return c, wait
	}
	c.Reason = v1alpha1.ReasonCoversNothing
	return c, 0
}

// recordNothing records an Event when a budget begins to have ReasonCoversNothing.
func recordNothing(ctx context.Context, before, after *v1alpha1.PodUnavailableBudget) {
	was, is := before.Status.GetCondition(v1alpha1.BudgetSynced), after.Status.GetCondition(v1alpha1.BudgetSynced)
	if is.Reason == v1alpha1.ReasonCoversNothing && was.GetReason() != is.Reason {
		controller.GetEventRecorder(ctx).Event(after, corev1.EventTypeWarning, is.Reason, is.Message)
	}
}
