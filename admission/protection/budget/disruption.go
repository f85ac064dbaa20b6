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

// Disruptions knows Kubernetes' own PodDisruptionBudgets.
type Disruptions struct {
	Lister policylisters.PodDisruptionBudgetLister
	Client policyv1client.PodDisruptionBudgetsGetter
}

// Blocking returns a PodDisruptionBudget that will not let the pod be evicted;
// nil if none is known. The API server asks it after us: a charge for what it
// then refuses would only keep others out.
func (d Disruptions) Blocking(ctx context.Context, p *corev1.Pod) (*policyv1.PodDisruptionBudget, error) {
	all, err := d.Lister.PodDisruptionBudgets(p.Namespace).List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	for _, b := range all {
		if !blocks(b, p) {
			continue
		}
		// Nothing is refused on what only a cache says.
		live, err := d.Client.PodDisruptionBudgets(b.Namespace).Get(ctx, b.Name, metav1.GetOptions{})
		if apierrs.IsNotFound(err) {
			continue
		} else if err != nil {
			return nil, fmt.Errorf("read PodDisruptionBudget %s: %w", b.Name, err)
		}
		if blocks(live, p) {
			return live, nil
		}
	}
	return nil, nil
}

func blocks(b *policyv1.PodDisruptionBudget, p *corev1.Pod) bool {
	if b.Status.DisruptionsAllowed > 0 {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(p.Labels))
}
