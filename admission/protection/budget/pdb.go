package budget

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	policyv1client "k8s.io/client-go/kubernetes/typed/policy/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// PodDisruptionBudgets finds those that refuse an eviction.
type PodDisruptionBudgets struct {
	Lister policylisters.PodDisruptionBudgetLister
	Client policyv1client.PodDisruptionBudgetsGetter
}

// Blocking returns the status with which the API server will refuse the eviction of the pod, which was
// read from it; nil if no PodDisruptionBudget that is known refuses it. The API server checks them after
// the webhooks: a charge for a request that it then refuses would only block others.
func (d PodDisruptionBudgets) Blocking(ctx context.Context, p *corev1.Pod) (*metav1.Status, error) {
	if !workload.PodActive(p) || p.Status.Phase == corev1.PodPending {
		return nil, nil // the API server does not ask them
	}
	selecting, err := d.selecting(ctx, p)
	if err != nil || len(selecting) == 0 {
		return nil, err
	}
	b := selecting[0]
	switch {
	case len(selecting) > 1:
		// The code of the API server, whose answer has no reason: a drain fails, and does not wait.
		return refusal(p, b, http.StatusInternalServerError, "", fmt.Sprintf(
			"is not possible: PodDisruptionBudgets %s and %s select it, and Kubernetes evicts no pod that several select", b.Name, selecting[1].Name)), nil
	case !workload.PodReady(p) && mayEvictUnready(b):
		return nil, nil
	case b.Status.ObservedGeneration < b.Generation:
		return refusal(p, b, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, fmt.Sprintf(
			"would violate PodDisruptionBudget %s: its status is not synced with its generation %d yet", b.Name, b.Generation)), nil
	case b.Status.DisruptionsAllowed <= 0:
		return refusal(p, b, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, fmt.Sprintf(
			"would violate PodDisruptionBudget %s: it allows 0 disruptions now (%d healthy, %d needed)", b.Name, b.Status.CurrentHealthy, b.Status.DesiredHealthy)), nil
	}
	return nil, nil
}

// mayEvictUnready reports whether a pod that is not Ready may be evicted although the budget allows no
// disruption.
func mayEvictUnready(b *policyv1.PodDisruptionBudget) bool {
	return ptr.Deref(b.Spec.UnhealthyPodEvictionPolicy, policyv1.IfHealthyBudget) == policyv1.AlwaysAllow ||
		b.Status.DesiredHealthy > 0 && b.Status.CurrentHealthy >= b.Status.DesiredHealthy
}

func refusal(p *corev1.Pod, b *policyv1.PodDisruptionBudget, code int32, reason metav1.StatusReason, why string) *metav1.Status {
	message := fmt.Sprintf("eviction of pod %s/%s %s", p.Namespace, p.Name, why)
	return &metav1.Status{Code: code, Reason: reason, Message: message, Details: &metav1.StatusDetails{
		Name: b.Name, Group: policyv1.GroupName, Kind: "poddisruptionbudgets",
		Causes: []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: message}},
	}}
}

// selecting returns the PodDisruptionBudgets that select the pod, in the order of their names.
func (d PodDisruptionBudgets) selecting(ctx context.Context, p *corev1.Pod) ([]*policyv1.PodDisruptionBudget, error) {
	all, err := d.Lister.PodDisruptionBudgets(p.Namespace).List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list PodDisruptionBudgets: %w", err)
	}
	slices.SortFunc(all, func(x, y *policyv1.PodDisruptionBudget) int { return strings.Compare(x.Name, y.Name) })
	var selecting []*policyv1.PodDisruptionBudget
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
		if selects(live, p) {
			selecting = append(selecting, live)
		}
	}
	return selecting, nil
}

func selects(b *policyv1.PodDisruptionBudget, p *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(p.Labels))
}
