package budget

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/protection/affinity"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/groupcommit"
)

// refundTimeout is how long a refund is retried; then the controller refunds.
const refundTimeout = 5 * time.Second

// Charges are the charges that one request uses. The zero value has none.
type Charges struct{ of *evaluation }

// Finish returns the final answer to the request; answer is the preliminary one. If the
// final answer is a denial, Finish refunds the charges. After the deadline, the final
// answer is a denial if the API server denies requests that are not answered in time.
func (c Charges) Finish(ctx context.Context, answer admission.Answer) admission.Answer {
	if c.of == nil {
		return answer
	}
	if answer.Response.Allowed && ctx.Err() != nil && c.of.FailsClosed() {
		answer = undecided(nil, groupcommit.ErrDeadline)
	}
	if !answer.Response.Allowed {
		c.of.refundAll(ctx)
	}
	return answer
}

// addCharge records a charge that the request uses.
func (e *evaluation) addCharge(key types.NamespacedName, request budget.Request) {
	if !e.dryRun {
		e.charged = append(e.charged, budgetRequest{key, request})
	}
}

// useRecentCharge uses the charge of the same deletion if that was allowed recently, and reports
// whether it was. The reference is added first, so that the charge is not refunded between the
// check and the answer; if the result is false, it stays and the caller continues with it.
func (e *evaluation) useRecentCharge(key types.NamespacedName, b *v1alpha1.PodUnavailableBudget, request budget.Request) bool {
	if e.dryRun {
		return false
	}
	e.References.add(key, request, nil)
	if e.Recent.wasAdmitted(b, request) {
		e.decision = DecisionRepeated
		e.addCharge(key, request)
		return true
	}
	return false
}

// refundAll refunds the charges of a request that has failed. After a forwarded
// request times out, the forwarding replica decides it itself and may use the charges
// written here. So they are left to the controller, which refunds those that are not used.
func (e *evaluation) refundAll(ctx context.Context) {
	if ctx.Err() != nil && affinity.Forwarded(ctx) {
		return
	}
	for _, r := range e.charged {
		e.Recent.remove(r.key, r.Request)
		e.refund(ctx, r)
	}
}

// refund removes the request's reference to a charge and refunds it if it was the
// last one. The refund is asynchronous, so that it does not delay the answer.
func (e *evaluation) refund(ctx context.Context, r budgetRequest) {
	if e.dryRun {
		return
	}
	if r.Pods = e.References.remove(r.key, r.Request); len(r.Pods) == 0 {
		return
	}
	r.Refund = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundTimeout)
	// It may wait for the place of a list, and must not hold the pods of the action meanwhile.
	refunding := &evaluation{Guard: e.Guard, action: &Action{Selector: e.action.Selector}}
	go func() {
		defer cancel()
		if r.Pods = refunding.unaffectedPods(ctx, r); len(r.Pods) == 0 {
			return
		}
		if _, err := refunding.Commit.Do(ctx, r.key, r.Request); err != nil && !apierrs.IsNotFound(err) {
			logging.FromContext(ctx).Warnw("refund of a charge left to the controller", "budget", r.key, "error", err)
		}
	}()
}

// unaffectedPods omits pods that are deleted or terminating: another replica may have
// allowed a request with the same charge. It also omits pods that cannot be read. The
// controller handles their charges.
func (e *evaluation) unaffectedPods(ctx context.Context, r budgetRequest) []budget.Pod {
	now, err := e.podsNow(ctx, r)
	if err != nil {
		return nil
	}
	running := sets.New[types.UID]()
	for _, p := range now {
		if p.DeletionTimestamp == nil {
			running.Insert(p.UID)
		}
	}
	return slices.DeleteFunc(slices.Clone(r.Pods), func(p budget.Pod) bool { return !running.Has(p.UID) })
}

// podsNow reads the pods of a request, many of one controller at once.
func (e *evaluation) podsNow(ctx context.Context, r budgetRequest) ([]*corev1.Pod, error) {
	if len(r.Pods) == 1 {
		p, err := e.Pods.Pods(r.key.Namespace).Get(ctx, r.Pods[0].Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return []*corev1.Pod{p}, nil
	}
	pods, _, err := e.PodLists.List(ctx, r.key.Namespace, e.action.Selector.String())
	return pods, err
}
