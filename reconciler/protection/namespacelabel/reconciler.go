// Package namespacelabel keeps the label of namespaces by which requests about their
// pods reach the webhook: there while there is a budget, and not for long after
// the last. The webhook sets it too, before the first budget is there.
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
	// settle is for how long a namespace has no budget before its label goes. The
	// webhook sets the label before the budget is stored, which may take as long
	// as other webhooks may be asked about it.
	removalDelay = 30 * time.Second
	// retryStale gives the cache time to show who changed the namespace.
	conflictRetry = time.Second
)

// Reconciler keeps the label of namespaces.
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

// remove takes the label off, if there is no budget that the cache does not have
// yet. Whatever comes of it, the label is not removed again before it was of no
// use for as long.
func (r *Reconciler) remove(ctx context.Context, n *corev1.Namespace) reconciler.Event {
	live, err := r.Client.PodUnavailableBudgets(n.Name).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("list the budgets of %s: %w", n.Name, err)
	}
	r.unused.forget(n.UID)
	if len(live.Items) > 0 && !changev1alpha1.NeverGuarded(n.Name) {
		return controller.NewRequeueAfter(removalDelay)
	}
	// Not if somebody has set it anew, which the cache does not have yet.
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

// deed is what is done with the label.
type action int

const (
	keepLabel action = iota
	setLabel
	waitToRemove
	removeLabel
)

// decide says what is done with a namespace that has budgets, or none, and whose
// label has been of no use for a time.
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

// guarded says whether a namespace is to have the label.
func needsLabel(n *corev1.Namespace, budgets bool) bool {
	return budgets && !changev1alpha1.NeverGuarded(n.Name)
}

// useless says whether a namespace has the label and needs none.
func hasUnusedLabel(n *corev1.Namespace, budgets bool) bool {
	return n.DeletionTimestamp == nil && hasLabel(n) && !needsLabel(n, budgets)
}

func hasLabel(n *corev1.Namespace) bool {
	_, ok := n.Labels[v1alpha1.HasBudgetLabel]
	return ok && (n.Labels[v1alpha1.HasBudgetLabel] == v1alpha1.HasBudgetValue)
}
