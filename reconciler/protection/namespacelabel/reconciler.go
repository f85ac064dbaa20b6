// Package namespacelabel reconciles the label by which requests about the pods of a
// namespace reach the webhook. A namespace has it while it has a budget, and for
// removalDelay after the last one. The webhook sets it too, before the first budget
// is stored.
package namespacelabel

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
	reconcilernamespace "knative.dev/pkg/client/injection/kube/reconciler/core/v1/namespace"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/reconciler"

	changev1alpha1 "github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	policyclient "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/policy/v1alpha1"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
)

const (
	// removalDelay is how long a namespace must have no budget until the label is
	// removed. The webhook sets the label before the budget is stored, and other
	// webhooks may delay that.
	removalDelay = 30 * time.Second
	// conflictRetry gives the cache time to show a conflicting change.
	conflictRetry = time.Second
)

// Reconciler reconciles the label of namespaces.
type Reconciler struct {
	Namespaces corev1client.NamespaceInterface
	Lister     listers.PodUnavailableBudgetLister
	Client     policyclient.PodUnavailableBudgetsGetter
	Clock      clock.PassiveClock

	unused unusedLabels
}

var _ reconcilernamespace.Interface = (*Reconciler)(nil)

// ReconcileKind implements the generated reconciler.
func (r *Reconciler) ReconcileKind(ctx context.Context, n *corev1.Namespace) reconciler.Event {
	cached, err := r.Lister.PodUnavailableBudgets(n.Name).List(labels.Everything())
	if err != nil {
		return err
	}
	budgets := len(cached) > 0
	var unused time.Duration
	if hasUnusedLabel(n, budgets) {
		unused = r.unused.unusedFor(n.UID, r.Clock.Now())
	} else {
		r.unused.forget(n.UID)
	}
	switch decide(n, budgets, unused) {
	case setLabel:
		return r.patch(ctx, n, fmt.Sprintf(`{"labels":{%q:%q}}`, v1alpha1.HasBudgetLabel, v1alpha1.HasBudgetValue))
	case waitToRemove:
		return controller.NewRequeueAfter(removalDelay - unused)
	case removeLabel:
		return r.remove(ctx, n)
	}
	return nil
}

// remove removes the label, unless there is a budget that the cache does not have
// yet. If there is one, it waits for removalDelay again. Without the CRD there is none.
func (r *Reconciler) remove(ctx context.Context, n *corev1.Namespace) reconciler.Event {
	live, err := r.Client.PodUnavailableBudgets(n.Name).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil && !apierrs.IsNotFound(err) {
		return fmt.Errorf("list the budgets of %s: %w", n.Name, err)
	}
	r.unused.forget(n.UID)
	if err == nil && len(live.Items) > 0 && !changev1alpha1.ExcludedNamespace(n.Name) {
		return controller.NewRequeueAfter(removalDelay)
	}
	// Optimistic lock: another writer may have set the label again.
	return r.patch(ctx, n, fmt.Sprintf(`{"resourceVersion":%q,"labels":{%q:null}}`, n.ResourceVersion, v1alpha1.HasBudgetLabel))
}

func (r *Reconciler) patch(ctx context.Context, n *corev1.Namespace, metadata string) reconciler.Event {
	_, err := r.Namespaces.Patch(ctx, n.Name, types.MergePatchType, []byte(`{"metadata":`+metadata+`}`), metav1.PatchOptions{})
	switch {
	case apierrs.IsConflict(err):
		return controller.NewRequeueAfter(conflictRetry)
	case err != nil && !apierrs.IsNotFound(err):
		return fmt.Errorf("label namespace %s: %w", n.Name, err)
	}
	return nil
}

// action is the change of the label.
type action int

const (
	keepLabel action = iota
	setLabel
	waitToRemove
	removeLabel
)

// decide decides whether to set, keep or remove the label of a namespace. Unused is
// how long the label has not been needed.
func decide(n *corev1.Namespace, budgets bool, unused time.Duration) action {
	switch {
	case n.DeletionTimestamp != nil, needsLabel(n, budgets) == hasLabel(n):
		return keepLabel
	case !hasUnusedLabel(n, budgets):
		return setLabel
	case unused < removalDelay:
		return waitToRemove
	default:
		return removeLabel
	}
}

// needsLabel reports whether a namespace must have the label.
func needsLabel(n *corev1.Namespace, budgets bool) bool {
	return budgets && !changev1alpha1.ExcludedNamespace(n.Name)
}

// hasUnusedLabel reports whether a namespace has the label without needing it.
func hasUnusedLabel(n *corev1.Namespace, budgets bool) bool {
	return n.DeletionTimestamp == nil && hasLabel(n) && !needsLabel(n, budgets)
}

func hasLabel(n *corev1.Namespace) bool {
	return n.Labels[v1alpha1.HasBudgetLabel] == v1alpha1.HasBudgetValue
}
