// Package budget derives the status of PodUnavailableBudgets from watched pods and
// owners. It keeps a charge of the webhook until its outcome is known. The webhook adds
// charges, refunds its own, and lowers UnavailableAllowed. This controller removes
// charges whose outcome is known, and computes everything else; only it raises
// UnavailableAllowed.
package budget

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	policyclient "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/policy/v1alpha1"
	reconcilerbudget "github.com/breakwater-dev/breakwater/client/injection/reconciler/policy/v1alpha1/podunavailablebudget"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/deadline"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/podlist"
)

const (
	// maxAttempts is how often a status is computed at most: again when the budget has
	// changed meanwhile.
	maxAttempts = 8
	// unwatchedResync is the interval at which owners that are not watched are read again.
	unwatchedResync = 10 * time.Second
	// watchedResync is the interval for budgets whose owners are all watched. It bounds the
	// time that an undetected error lasts.
	watchedResync = 5 * time.Minute
)

// Reconciler derives the status of budgets.
type Reconciler struct {
	client    policyclient.PodUnavailableBudgetsGetter
	podLister corelisters.PodLister
	// podLists lists pods from the API server.
	podLists *podlist.Lister
	owners   *owners
	podWatch *podWatch
	charges  *chargeTimes
	throttle *throttle
	guarding *guardingCheck
	// refunded counts charges whose request did not take effect.
	refunded metrics.Counter
}

var _ reconcilerbudget.Interface = (*Reconciler)(nil)

// ReconcileKind implements the generated reconciler.
func (r *Reconciler) ReconcileKind(ctx context.Context, b *v1alpha1.PodUnavailableBudget) reconciler.Event {
	key := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
	if wait := r.throttle.wait(key, b); wait > 0 {
		return controller.NewRequeueAfter(wait)
	}
	r.throttle.record(key)
	guarding, again := r.guarding.check(b)
	next, d, err := r.write(ctx, b, guarding)
	if err != nil || next == nil {
		return err
	}
	_, expires := r.charges.observe(next)
	settledWait := time.Duration(0)
	if d.KeptSettled > 0 {
		settledWait = settledRetention
	}
	for _, wait := range []time.Duration{expires, settledWait, d.resyncAfter} {
		again = deadline.ShorterWait(again, wait)
	}
	if again > 0 {
		return controller.NewRequeueAfter(again)
	}
	return nil
}

// computed is a derivation, and when to compute it again.
type computed struct {
	budget.Derivation
	// resyncAfter is the time until the next reconciliation without an event.
	resyncAfter time.Duration
}

// write computes and writes the status, and repeats it after a conflict, mostly with a
// new charge. It returns nil if the budget does not exist anymore.
func (r *Reconciler) write(ctx context.Context, b *v1alpha1.PodUnavailableBudget, guarding apis.Condition) (*v1alpha1.PodUnavailableBudget, computed, error) {
	var none computed
	client := r.client.PodUnavailableBudgets(b.Namespace)
	unanswered := unansweredKinds{}
	for range maxAttempts {
		next, d := r.compute(ctx, b, guarding, unanswered)
		if equality.Semantic.DeepEqual(b.Status, next.Status) {
			return b, d, nil
		}
		written, err := client.UpdateStatus(ctx, next, metav1.UpdateOptions{})
		switch {
		case err == nil:
			recordNothing(ctx, b, written)
			if d.Refunded > 0 {
				r.refunded.Add(ctx, int64(d.Refunded))
				logging.FromContext(ctx).Infow("refunded charges whose request did not take effect", "charges", d.Refunded)
			}
			return written, d, nil
		case apierrs.IsNotFound(err):
			return nil, none, nil
		case !apierrs.IsConflict(err):
			return nil, none, fmt.Errorf("write status: %w", err)
		}
		if b, err = client.Get(ctx, b.Name, metav1.GetOptions{}); apierrs.IsNotFound(err) {
			return nil, none, nil
		} else if err != nil {
			return nil, none, fmt.Errorf("read the budget: %w", err)
		}
	}
	return nil, none, controller.NewRequeueAfter(minInterval)
}

func (r *Reconciler) compute(ctx context.Context, b *v1alpha1.PodUnavailableBudget, guarding apis.Condition, unanswered unansweredKinds) (*v1alpha1.PodUnavailableBudget, computed) {
	scope, err := budget.ScopeOf(b)
	if err != nil {
		return unsynced(b, v1alpha1.ReasonInvalidSelector, err), computed{}
	}
	observed, resyncAfter, err := r.gather(ctx, b, scope, unanswered)
	if err != nil {
		logging.FromContext(ctx).Warnw("could not compute the numbers of the budget", "error", err)
		return unsynced(b, v1alpha1.ReasonOwnersUnknown, err), computed{resyncAfter: retryAfter(err)}
	}
	key := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
	observed.KeepSettled = func(charge string) bool { return r.charges.keepSettled(key, charge) }
	next, d, wait := derive(b, observed, guarding)
	if !equality.Semantic.DeepEqual(b.Status, next.Status) {
		next.Status.PodsResourceVersion = observed.ResourceVersion
	}
	return next, computed{d, deadline.ShorterWait(resyncAfter, wait)}
}

// ObserveDeletion deletes the state of a deleted budget.
func (r *Reconciler) ObserveDeletion(_ context.Context, key types.NamespacedName) error {
	r.charges.forget(key)
	r.throttle.forget(key)
	r.guarding.forget(key)
	return nil
}
