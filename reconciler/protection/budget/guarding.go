package budget

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"knative.dev/pkg/apis"

	changev1alpha1 "github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

const (
	// inFlightWait is how long a budget waits, after every replica has answered, until
	// it is Guarding: earlier requests have ended by then.
	inFlightWait = time.Second
	// probeRetry is the time until an incomplete probe is repeated.
	probeRetry = time.Second
	// probeInterval is the time until a complete probe is repeated.
	probeInterval = 5 * time.Minute
)

// Prober probes whether every replica of the webhook knows a budget.
type Prober interface {
	// Probe returns the replicas that answered and all ready replicas. again: every replica has
	// answered for this generation of the budget before.
	Probe(_ context.Context, _ *v1alpha1.PodUnavailableBudget, again bool) (answered, all sets.Set[string], err error)
}

// guardingCheck keeps the condition Guarding of each budget. Reconciling reads it and
// never waits: probes run in goroutines of their own.
type guardingCheck struct {
	prober Prober
	// queue has the budgets to probe.
	queue workqueue.TypedInterface[types.NamespacedName]

	mu sync.Mutex
	// states are the results of probes, by budget.
	states map[types.NamespacedName]probeState
}

// probeState is the result of the probes of one generation of a budget.
type probeState struct {
	uid        types.UID
	generation int64
	allSince   time.Time
	condition  apis.Condition
	next       time.Time
	// pending is the budget to probe; nil if no probe is due.
	pending *v1alpha1.PodUnavailableBudget
}

func newGuardingCheck(p Prober) *guardingCheck {
	return &guardingCheck{
		prober: p, states: map[types.NamespacedName]probeState{},
		queue: workqueue.NewTyped[types.NamespacedName](),
	}
}

// check returns the condition, and the time until the next check. When a probe is
// due, the check requests it and returns 0: the end of the probe enqueues the budget.
func (g *guardingCheck) check(b *v1alpha1.PodUnavailableBudget) (apis.Condition, time.Duration) {
	if changev1alpha1.ExcludedNamespace(b.Namespace) {
		return apis.Condition{Type: v1alpha1.BudgetGuarding, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNamespaceNeverGuarded,
			Message: "budgets do not apply in this namespace, because the cluster needs its pods to recover"}, 0
	}
	key := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.states[key]
	if s.uid != b.UID || s.generation != b.Generation {
		s = probeState{uid: b.UID, generation: b.Generation, condition: apis.Condition{
			Type: v1alpha1.BudgetGuarding, Status: corev1.ConditionUnknown, Reason: v1alpha1.ReasonProbing,
			Message: "no replica of the webhook has been probed since the budget changed or the controller started",
		}}
	}
	if now.Before(s.next) {
		return s.condition, s.next.Sub(now)
	}
	s.pending = b
	g.states[key] = s
	g.queue.Add(key)
	return s.condition, 0
}

func (g *guardingCheck) forget(key types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.states, key)
}

// evaluateProbe decides the condition Guarding from the answers to a probe.
func evaluateProbe(s probeState, answered, all sets.Set[string], err error, now time.Time) probeState {
	s.condition = apis.Condition{Type: v1alpha1.BudgetGuarding, Status: corev1.ConditionUnknown, Reason: v1alpha1.ReasonProbing}
	s.next = now.Add(probeRetry)
	missing := all.Difference(answered)
	switch {
	case err != nil:
		s.condition.Message = "probe failed: " + err.Error()
	case len(all) == 0:
		s.condition.Status, s.condition.Reason = corev1.ConditionFalse, v1alpha1.ReasonWebhookNotCalled
		s.condition.Message = "no replica of the webhook is ready: requests are denied, or pass if failurePolicy is Ignore"
	case len(answered) == 0:
		s.condition.Status, s.condition.Reason = corev1.ConditionFalse, v1alpha1.ReasonWebhookNotCalled
		s.condition.Message = "no answer to the probe: either the webhook does not know this version of the budget yet, or the namespace label or the webhook configuration is not in effect"
	case len(missing) > 0:
		s.condition.Message = fmt.Sprintf("no answer yet from %s", strings.Join(sets.List(missing), ", "))
	case s.allSince.IsZero():
		s.allSince, s.next = now, now.Add(inFlightWait)
		s.condition.Message = "every replica of the webhook has answered; waiting for earlier requests to end"
	case now.Sub(s.allSince) < inFlightWait:
		s.next = s.allSince.Add(inFlightWait)
		s.condition.Message = "every replica of the webhook has answered; waiting for earlier requests to end"
	default:
		s.condition.Status, s.condition.Reason = corev1.ConditionTrue, v1alpha1.ReasonAllReplicasAnswered
		s.next = now.Add(probeInterval)
	}
	if s.condition.Status == corev1.ConditionFalse {
		s.allSince = time.Time{}
	}
	return s
}
