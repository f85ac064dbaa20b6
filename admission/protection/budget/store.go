package budget

import (
	"context"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	policyclient "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/policy/v1alpha1"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/groupcommit"
)

// Committer charges budgets.
type Committer = groupcommit.Committer[*v1alpha1.PodUnavailableBudget, budget.Request, budget.Decision]

// NewCommitter returns a Committer. It calls observe, unless that is nil, when a group ends.
func NewCommitter(lister listers.PodUnavailableBudgetLister, client policyclient.PodUnavailableBudgetsGetter, references *ChargeReferences, observe func(groupcommit.Stats)) *Committer {
	return groupcommit.New(store{lister, client}, references.decide, groupcommit.Options{Observe: observe})
}

// decide decides a group and references the charges of the admitted requests. It
// does not refund referenced charges.
func (r *ChargeReferences) decide(b *v1alpha1.PodUnavailableBudget, group []budget.Request) groupcommit.Decision[*v1alpha1.PodUnavailableBudget, budget.Decision] {
	next, decisions := budget.Decide(b, group)
	key := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
	for i, request := range group {
		if decisions[i].Admitted && !request.Refund && !request.DryRun {
			r.add(key, request, decisions[i].Charged)
		}
	}
	if kept, fewer := r.dropReferenced(key, group); fewer {
		next, decisions = budget.Decide(b, kept)
	}
	return groupcommit.Decision[*v1alpha1.PodUnavailableBudget, budget.Decision]{Changed: next != nil, Next: next, Answers: decisions}
}

// store reads and writes budgets.
type store struct {
	lister listers.PodUnavailableBudgetLister
	client policyclient.PodUnavailableBudgetsGetter
}

func (s store) Cached(key types.NamespacedName) (*v1alpha1.PodUnavailableBudget, bool) {
	b, err := s.lister.PodUnavailableBudgets(key.Namespace).Get(key.Name)
	return b, err == nil
}

func (s store) Live(ctx context.Context, key types.NamespacedName) (*v1alpha1.PodUnavailableBudget, error) {
	return s.client.PodUnavailableBudgets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
}

// Swap returns an error if the API server dropped a charge. It drops the fields that its CRD
// does not have, without an error, and the next request would find the budget uncharged.
func (s store) Swap(ctx context.Context, next *v1alpha1.PodUnavailableBudget) (*v1alpha1.PodUnavailableBudget, error) {
	written, err := s.client.PodUnavailableBudgets(next.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if err == nil && !hasCharges(written, next) {
		return nil, apierrs.NewBadRequest("the API server did not store the charge: CRD podunavailablebudgets.policy.kruise.io " +
			"lacks its field, and is of another version or of another program; apply the CRDs of config/protection again")
	}
	return written, err
}

// hasCharges reports whether the written budget has all charges.
func hasCharges(written, charged *v1alpha1.PodUnavailableBudget) bool {
	for uid := range charged.Status.DeletedPods {
		if _, ok := written.Status.DeletedPods[uid]; !ok {
			return false
		}
	}
	for name := range charged.Status.UnavailablePods {
		if _, ok := written.Status.UnavailablePods[name]; !ok {
			return false
		}
	}
	return true
}
