package budget

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

// gather reads the pods and owners from which the numbers of a budget are derived. resyncAfter is
// the time until they have to be read again without an event.
func (r *Reconciler) gather(ctx context.Context, b *v1alpha1.PodUnavailableBudget, scope budget.Scope, unanswered unansweredKinds) (observed budget.Observed, resyncAfter time.Duration, err error) {
	expired, _ := r.charges.observe(b) // before the pods are read
	pods, resourceVersion, err := r.pods(ctx, b, expired)
	if err != nil {
		return budget.Observed{}, 0, err
	}
	observed = budget.Observed{ResourceVersion: resourceVersion, Expired: expired}
	t := newOwnerTally(ctx, r.owners, b.Namespace, unanswered)
	scope, err = t.withTraffic(scope)
	if err != nil {
		return observed, t.resyncAfter, err
	}
	if err := t.readTarget(b.Spec.TargetRef, scope); err != nil {
		return observed, t.resyncAfter, err
	}
	var unread error // why the owners of observed.MayBeCovered are unknown
	for _, p := range pods {
		if !scope.MayCover(p) {
			continue
		}
		c, err := t.chain(p)
		last, _ := c.above.Topmost() // with an error, the unread owner
		switch {
		// The event of an owner of a watched kind reconciles soon.
		case err != nil && (scope.Covers(p, c.above) || watched[schema.GroupKind{Group: last.Group, Kind: last.Kind}]):
			return observed, t.resyncAfter, err
		case err != nil: // mostly a pod of another workload than the target
			unread, observed.MayBeCovered = err, append(observed.MayBeCovered, p)
			continue
		}
		// Pods of an application that is being deleted may be deleted at any time
		// without a decision, so they do not count.
		if !scope.Covers(p, c.above) || c.above.TopmostTerminatingOrGone() {
			continue
		}
		t.count(p, c.owners)
		// Pods below a terminating pod count as desired, because they are created again, but not as available.
		if !c.above.BeingDeleted() {
			observed.Pods = append(observed.Pods, p)
		}
	}
	wanted, err := t.countTarget(b.Spec.TargetRef, scope)
	if err == nil && wanted == nil {
		err = unread
	}
	if err != nil {
		return observed, t.resyncAfter, err
	}
	observed.ExistsUncovered = func(uid types.UID) bool {
		is := func(p *corev1.Pod) bool { return p.UID == uid }
		return slices.ContainsFunc(pods, is) && !slices.ContainsFunc(observed.Pods, is)
	}
	observed.Total, observed.UnknownReplicas = t.total()
	if unread != nil {
		logging.FromContext(ctx).Warnw("pods whose owners could not be read do not count as available", "error", unread)
		t.resyncAfter = min(t.resyncAfter, retryAfter(unread))
		observed.Total = max(observed.Total, *wanted)
	}
	observed.Excess = t.excess()
	observed.CoversNothing = t.coversNothing(b.Spec.TargetRef, observed)
	return observed, t.resyncAfter, nil
}

// maxListed is how many bytes of the pods of a namespace are kept, enough for 30,000. The cache has them, too.
const maxListed = 32 << 20

// pods returns the pods of the budget's namespace and their resourceVersion. It lists them from
// the API server if a charge may end by time, because a cache that lags may not show yet that the
// request took effect at the end of its timeout. It also does so if the cache is older than the
// numbers in the status, as it may be after a change of the leader.
func (r *Reconciler) pods(ctx context.Context, b *v1alpha1.PodUnavailableBudget, expired func(string) bool) ([]*corev1.Pod, string, error) {
	resourceVersion := r.podWatch.resourceVersion()
	pods, err := r.podLister.Pods(b.Namespace).List(labels.Everything())
	if err != nil {
		return nil, "", fmt.Errorf("list cached pods: %w", err)
	}
	if !mayEndByTime(b, pods, expired) && (b.Status.PodsResourceVersion == "" || budget.NotOlder(resourceVersion, b.Status.PodsResourceVersion)) {
		return pods, resourceVersion, nil
	}
	return r.podLists.List(ctx, b.Namespace, "")
}

// mayEndByTime reports whether a charge has expired and may end because of that. The charge of
// an in-place change does not while the kubelet still has to act, which may last for days.
func mayEndByTime(b *v1alpha1.PodUnavailableBudget, pods []*corev1.Pod, expired func(string) bool) bool {
	for uid, entry := range b.Status.DeletedPods {
		if expired(budget.DeletedKey(uid, entry)) {
			return true
		}
	}
	for name, value := range b.Status.UnavailablePods {
		if e := budget.ParseEntry(value); expired(budget.ChangedKey(name, e)) && !slices.ContainsFunc(pods, e.IsPendingOn) {
			return true
		}
	}
	return false
}
