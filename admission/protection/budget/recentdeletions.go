package budget

import (
	"context"
	"fmt"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilcache "k8s.io/apimachinery/pkg/util/cache"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

// admittedTTL is how long an allowed deletion is remembered. It is much shorter than
// the life of a charge, so that the charge still exists or has taken effect.
const admittedTTL = budget.RepeatedTTL

// chargedTTL is how long a charge is remembered.
const chargedTTL = 10 * time.Second

// RecentDeletions remembers recently allowed deletions. The API server sends most of
// them twice within milliseconds; the second needs neither a write nor a read. It
// does not remember in-place changes, after which a pod may be available again.
type RecentDeletions struct {
	// admitted are deletions that this replica allowed.
	admitted *utilcache.Expiring
	// charged are charges that any replica wrote.
	charged *utilcache.Expiring
}

// NewRecentDeletions returns an empty RecentDeletions.
func NewRecentDeletions() *RecentDeletions {
	return &RecentDeletions{utilcache.NewExpiring(), utilcache.NewExpiring()}
}

// recentKey is a budget and a pod whose deletion it allowed.
type recentKey struct {
	budget types.NamespacedName
	pod    types.UID
}

// budgetState is the budget that allowed a deletion.
type budgetState struct {
	budget     types.UID
	generation int64
}

func (r *RecentDeletions) wasAdmitted(b *v1alpha1.PodUnavailableBudget, request budget.Request) bool {
	key := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
	for _, p := range request.Pods {
		found, ok := r.admitted.Get(recentKey{key, p.UID})
		if !ok || found != (budgetState{b.UID, b.Generation}) {
			return false
		}
	}
	return request.Operation == v1alpha1.OperationDelete
}

// add records an admitted request. A pod that was not available is not charged: its
// deletion is charged once it is available.
func (r *RecentDeletions) add(b *v1alpha1.PodUnavailableBudget, request budget.Request) {
	if request.Operation != v1alpha1.OperationDelete {
		return
	}
	for _, p := range request.Pods {
		if !p.BecomesUnavailable {
			continue
		}
		r.admitted.Set(recentKey{types.NamespacedName{Namespace: b.Namespace, Name: b.Name}, p.UID}, budgetState{b.UID, b.Generation}, admittedTTL)
	}
}

func (r *RecentDeletions) remove(key types.NamespacedName, request budget.Request) {
	for _, p := range request.Pods {
		r.admitted.Delete(recentKey{key, p.UID})
	}
}

// Observe records the charges of a budget that are new since before.
func (r *RecentDeletions) Observe(before, after *v1alpha1.PodUnavailableBudget) {
	key := types.NamespacedName{Namespace: after.Namespace, Name: after.Name}
	for uid := range after.Status.DeletedPods {
		if before != nil {
			if _, known := before.Status.DeletedPods[uid]; known {
				continue
			}
		}
		r.charged.Set(recentKey{key, uid}, true, chargedTTL)
	}
}

// chargeRemoved reports whether the pod was charged recently and is not any more.
func (r *RecentDeletions) chargeRemoved(b *v1alpha1.PodUnavailableBudget, uid types.UID) bool {
	if _, still := b.Status.DeletedPods[uid]; still {
		return false
	}
	_, ok := r.charged.Get(recentKey{types.NamespacedName{Namespace: b.Namespace, Name: b.Name}, uid})
	return ok
}

// carriedOut reports whether the deletion was allowed before and has taken effect: the
// request may show an old state of the pod. If the pod still exists, its charge was
// refunded, and the request must be charged again.
func (e *evaluation) carriedOut(ctx context.Context, b *v1alpha1.PodUnavailableBudget, request budget.Request) (bool, error) {
	if request.Operation != v1alpha1.OperationDelete || len(request.Pods) != 1 || !e.Recent.chargeRemoved(b, request.Pods[0].UID) {
		return false, nil
	}
	p, err := e.Pods.Pods(b.Namespace).Get(ctx, request.Pods[0].Name, metav1.GetOptions{})
	if apierrs.IsNotFound(err) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("read pod %s: %w", request.Pods[0].Name, err)
	}
	return p.UID != request.Pods[0].UID || p.DeletionTimestamp != nil, nil
}
