// Package guarded keeps the label of namespaces by which requests about their
// pods reach the webhook: there while there is a budget, and not after the last.
// The webhook sets it too, before the first budget is there.
package guarded

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	reconcilernamespace "knative.dev/pkg/client/injection/kube/reconciler/core/v1/namespace"
	"knative.dev/pkg/reconciler"

	changev1alpha1 "github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	policyclient "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/policy/v1alpha1"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
)

// Reconciler keeps the label of namespaces.
type Reconciler struct {
	Namespaces corev1client.NamespaceInterface
	Lister     listers.PodUnavailableBudgetLister
	Client     policyclient.PodUnavailableBudgetsGetter
}

var _ reconcilernamespace.Interface = (*Reconciler)(nil)

// ReconcileKind implements the generated reconciler.
func (r *Reconciler) ReconcileKind(ctx context.Context, n *corev1.Namespace) reconciler.Event {
	cached, err := r.Lister.PodUnavailableBudgets(n.Name).List(labels.Everything())
	if err != nil {
		return err
	}
	has := len(cached) > 0
	if !has && labelled(n) {
		// A budget may be there that the cache does not have yet.
		live, err := r.Client.PodUnavailableBudgets(n.Name).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return fmt.Errorf("list the budgets of %s: %w", n.Name, err)
		}
		has = len(live.Items) > 0
	}
	var value string
	switch decide(n, has) {
	case keep:
		return nil
	case set:
		value = `"` + v1alpha1.GuardedValue + `"`
	case remove:
		value = "null"
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, v1alpha1.GuardedLabel, value)
	_, err = r.Namespaces.Patch(ctx, n.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil && !apierrs.IsNotFound(err) {
		return fmt.Errorf("label namespace %s: %w", n.Name, err)
	}
	return nil
}

// deed is what is done with the label.
type deed int

const (
	keep deed = iota
	set
	remove
)

// decide says what is done with a namespace that has budgets, or none.
func decide(n *corev1.Namespace, budgets bool) deed {
	guarded := budgets && !changev1alpha1.NeverGuarded(n.Name)
	switch {
	case n.DeletionTimestamp != nil, guarded == labelled(n):
		return keep
	case guarded:
		return set
	default:
		return remove
	}
}

func labelled(n *corev1.Namespace) bool {
	_, ok := n.Labels[v1alpha1.GuardedLabel]
	return ok && (n.Labels[v1alpha1.GuardedLabel] == v1alpha1.GuardedValue)
}
