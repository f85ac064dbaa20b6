// Package budget derives the numbers of PodUnavailableBudgets from what the
// watches show, and keeps what the webhook charged until it is seen what became
// of it. It is the only writer of all but the charges.
package budget

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	policyclient "github.com/breakwater-dev/breakwater/client/clientset/versioned/typed/policy/v1alpha1"
	reconcilerbudget "github.com/breakwater-dev/breakwater/client/injection/reconciler/policy/v1alpha1/podunavailablebudget"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

const (
	// attempts is how often a status is computed anew because the webhook
	// charged meanwhile.
	attempts = 8
	// resync is when owners that are not watched are read again.
	resync = 10 * time.Second
)

// Reconciler derives the status of budgets.
type Reconciler struct {
	kube      kubernetes.Interface
	client    policyclient.PodUnavailableBudgetsGetter
	podLister corelisters.PodLister
	owners    *owners
	podWatch  *podWatch
	charges   *chargeTimes
	throttle  *throttle
	guarding  *guardingCheck
	// returned counts charges that nothing became of.
	refunded metric.Int64Counter
}

var _ reconcilerbudget.Interface = (*Reconciler)(nil)

// ReconcileKind implements the generated reconciler.
func (r *Reconciler) ReconcileKind(ctx context.Context, b *v1alpha1.PodUnavailableBudget) reconciler.Event {
	key := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
	if wait := r.throttle.wait(key, len(b.Status.DeletedPods)+len(b.Status.UnavailablePods)); wait > 0 {
		return controller.NewRequeueAfter(wait)
	}
	r.throttle.record(key)
	guarding, again := r.guarding.check(ctx, b)
	next, d, err := r.write(ctx, b, guarding)
	if err != nil || next == nil {
		return err
	}
	_, expires := r.charges.observe(next)
	lingers := time.Duration(0)
	if d.KeptSettled > 0 {
		lingers = settledRetention
	}
	for _, wait := range []time.Duration{expires, lingers, r.resyncAfter(next)} {
		if wait > 0 && (again == 0 || wait < again) {
			again = wait
		}
	}
	if again > 0 {
		return controller.NewRequeueAfter(again)
	}
	return nil
}

// unwatched returns when a budget is looked at without a reason: the replicas of
// an owner of another kind change without a word.
func (r *Reconciler) resyncAfter(b *v1alpha1.PodUnavailableBudget) time.Duration {
	if b.Status.TotalReplicas == 0 && b.Spec.TargetRef == nil {
		return 0
	}
	return resync
}

// write computes and writes the status until no charge came between; nil if the
// budget is gone.
func (r *Reconciler) write(ctx context.Context, b *v1alpha1.PodUnavailableBudget, guarding apis.Condition) (*v1alpha1.PodUnavailableBudget, budget.Derivation, error) {
	var none budget.Derivation
	client := r.client.PodUnavailableBudgets(b.Namespace)
	for range attempts {
		next, d := r.compute(ctx, b, guarding)
		if equality.Semantic.DeepEqual(b.Status, next.Status) {
			return b, d, nil
		}
		written, err := client.UpdateStatus(ctx, next, metav1.UpdateOptions{})
		switch {
		case err == nil:
			if d.Refunded > 0 {
				r.refunded.Add(ctx, int64(d.Refunded))
				logging.FromContext(ctx).Infow("gave charges back that nothing became of", "charges", d.Refunded)
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

func (r *Reconciler) compute(ctx context.Context, b *v1alpha1.PodUnavailableBudget, guarding apis.Condition) (*v1alpha1.PodUnavailableBudget, budget.Derivation) {
	scope, err := budget.ScopeOf(b)
	if err != nil {
		next := unsynced(b, v1alpha1.ReasonInvalidSelector, err)
		next.Status.ObservedGeneration = b.Generation
		return next, budget.Derivation{}
	}
	seen, err := r.gather(ctx, b, scope)
	if err != nil {
		logging.FromContext(ctx).Warnw("the numbers of a budget cannot be computed", "error", err)
		return unsynced(b, v1alpha1.ReasonOwnersUnknown, err), budget.Derivation{}
	}
	key := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
	seen.Expired, _ = r.charges.observe(b)
	seen.KeepSettled = func(charge string) bool { return r.charges.keepSettled(key, charge) }
	next, d := derive(b, seen, guarding)
	if !equality.Semantic.DeepEqual(b.Status, next.Status) {
		next.Status.PodsResourceVersion = seen.ResourceVersion
	}
	return next, d
}

// ObserveDeletion forgets a budget that is gone.
func (r *Reconciler) ObserveDeletion(_ context.Context, key types.NamespacedName) error {
	r.charges.forget(key)
	r.throttle.forget(key)
	r.guarding.forget(key)
	return nil
}
