package budget

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	policyv1client "k8s.io/client-go/kubernetes/typed/policy/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
)

// PodDisruptionBudgets finds those that deny an eviction.
type PodDisruptionBudgets struct {
	Lister policylisters.PodDisruptionBudgetLister
	Client policyv1client.PodDisruptionBudgetsGetter
}

// Blocking returns a PodDisruptionBudget that will deny the eviction of the pod; nil
// if none is known. The API server checks it after the webhooks: a charge for a
// request that it then denies would only block others.
func (d PodDisruptionBudgets) Blocking(ctx context.Context, p *corev1.Pod) (*policyv1.PodDisruptionBudget, error) {
	all, err := d.Lister.PodDisruptionBudgets(p.Namespace).List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	for _, b := range all {
		if !selects(b, p) {
			continue
		}
		// A live read: a stale cache may allow a disruption that another eviction has
		// used, or deny one that is allowed again.
		live, err := d.Client.PodDisruptionBudgets(b.Namespace).Get(ctx, b.Name, metav1.GetOptions{})
		if apierrs.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("read PodDisruptionBudget %s: %w", b.Name, err)
		}
		if selects(live, p) && live.Status.DisruptionsAllowed <= 0 {
			return live, nil
		}
	}
	return nil, nil
}

func selects(b *policyv1.PodDisruptionBudget, p *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(p.Labels))
}
