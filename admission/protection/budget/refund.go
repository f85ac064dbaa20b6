package budget

import (
	"context"
	"slices"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/admission/protection/affinity"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

// returning is how long a charge is tried to be given back; after that the
// controller does it.
const refundTimeout = 5 * time.Second

// took remembers by which charge the request passes.
func (a *evaluation) addCharge(key types.NamespacedName, charge budget.Charge) {
	if !a.dryRun {
		a.charges = append(a.charges, budgetCharge{key, charge})
	}
}

// repeats says whether the same was let through a moment ago: then this request
// relies on that charge too. It says so first, so that nobody gives it back
// between the question and the answer.
func (a *evaluation) isRepeated(key types.NamespacedName, b *v1alpha1.PodUnavailableBudget, charge budget.Charge) bool {
	if a.dryRun {
		return false
	}
	a.References.add(key, charge, nil)
	if a.Recent.wasAdmitted(b, charge) {
		a.decision = DecisionRepeated
		a.addCharge(key, charge)
		return true
	}
	return false
}

// giveBack gives back what was charged for a request that comes to nothing. The
// replica that handed a request on decides it itself when it has waited for long
// enough, and may go on by what was charged here: that is left to the controller.
func (a *evaluation) refundAll(ctx context.Context) {
	if ctx.Err() != nil && affinity.Forwarded(ctx) {
		return
	}
	for _, t := range a.charges {
		a.Recent.remove(t.key, t.charge)
		a.release(ctx, t)
	}
}

// leave says that the request does not go on by a charge, and gives back what
// nobody else goes on by. It does not keep the answer waiting.
func (a *evaluation) release(ctx context.Context, t budgetCharge) {
	if a.dryRun {
		return
	}
	if t.charge.Pods = a.References.release(t.key, t.charge); len(t.charge.Pods) == 0 {
		return
	}
	t.charge.Refund = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundTimeout)
	go func() {
		defer cancel()
		if t.charge.Pods = a.unaffectedPods(ctx, t); len(t.charge.Pods) == 0 {
			return
		}
		if _, err := a.Commit.Do(ctx, t.key, t.charge); err != nil && !apierrs.IsNotFound(err) {
			logging.FromContext(ctx).Warnw("a charge is left to the controller to give back", "budget", t.key, "error", err)
		}
	}()
}

// untouched leaves out pods of which something has become meanwhile: a request
// that another replica let through by the same charge. The controller sees to
// theirs, and to those that cannot be read.
func (a *evaluation) unaffectedPods(ctx context.Context, t budgetCharge) []budget.Pod {
	return slices.DeleteFunc(slices.Clone(t.charge.Pods), func(p budget.Pod) bool {
		now, err := a.Pods.Pods(t.key.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
		return err != nil || now.UID != p.UID || now.DeletionTimestamp != nil
	})
}
