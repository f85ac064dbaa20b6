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

// again is how long a charge that passed is remembered: far shorter than one is
// kept, so what is remembered is still charged or carried out.
const admittedTTL = 2 * time.Second

// chargedBefore is how long it is remembered that a pod was charged.
const chargedTTL = 10 * time.Second

// Recent remembers deletions that passed. The API server asks twice about most of
// them, milliseconds apart; the second time nothing has to be written or read.
// (A pod that was changed in place may have gone and come back meanwhile; one
// that was deleted has not.)
type RecentDeletions struct {
	// passed is what passed here.
	admitted *utilcache.Expiring
	// charged is what was seen to be charged, here or by another replica.
	charged *utilcache.Expiring
}

// NewRecent returns one that remembers nothing.
func NewRecentDeletions() *RecentDeletions {
	return &RecentDeletions{utilcache.NewExpiring(), utilcache.NewExpiring()}
}

// recentKey is a budget and a pod whose deletion passed it.
type recentKey struct {
	budget types.NamespacedName
	pod    types.UID
}

// passage is by which state of which budget it passed.
type budgetState struct {
	budget     types.UID
	generation int64
}

func (r *RecentDeletions) wasAdmitted(b *v1alpha1.PodUnavailableBudget, c budget.Charge) bool {
	key := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
	for _, p := range c.Pods {
		found, ok := r.admitted.Get(recentKey{key, p.UID})
		if !ok || found != (budgetState{b.UID, b.Generation}) {
			return false
		}
	}
	return c.Operation == v1alpha1.OperationDelete
}

func (r *RecentDeletions) add(b *v1alpha1.PodUnavailableBudget, c budget.Charge) {
	if c.Operation != v1alpha1.OperationDelete {
		return
	}
	for _, p := range c.Pods {
		r.admitted.Set(recentKey{types.NamespacedName{Namespace: b.Namespace, Name: b.Name}, p.UID}, budgetState{b.UID, b.Generation}, admittedTTL)
	}
}

func (r *RecentDeletions) remove(key types.NamespacedName, c budget.Charge) {
	for _, p := range c.Pods {
		r.admitted.Delete(recentKey{key, p.UID})
	}
}

// See is told of each state of a budget, and the one before.
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

// wasCharged says whether the pod was charged a moment ago and is no more.
func (r *RecentDeletions) wasCharged(b *v1alpha1.PodUnavailableBudget, uid types.UID) bool {
	if _, still := b.Status.DeletedPods[uid]; still {
		return false
	}
	_, ok := r.charged.Get(recentKey{types.NamespacedName{Namespace: b.Namespace, Name: b.Name}, uid})
	return ok
}

// carriedOut says whether the deletion that is asked about was let through
// before and is carried out: the API server may show the pod as it was. Where
// the pod lives on, the charge was given back, and is due again.
func (a *evaluation) carriedOut(ctx context.Context, b *v1alpha1.PodUnavailableBudget, c budget.Charge) (bool, error) {
	if c.Operation != v1alpha1.OperationDelete || len(c.Pods) != 1 || !a.Recent.wasCharged(b, c.Pods[0].UID) {
		return false, nil
	}
	p, err := a.Pods.Pods(b.Namespace).Get(ctx, c.Pods[0].Name, metav1.GetOptions{})
	if apierrs.IsNotFound(err) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("read pod %s: %w", c.Pods[0].Name, err)
	}
	return p.UID != c.Pods[0].UID || p.DeletionTimestamp != nil, nil
}
