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
	"k8s.io/utils/clock"
	"knative.dev/pkg/apis"

	changev1alpha1 "github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

const (
	// settleTime is how long a budget waits, after every replica has answered, until
	// it is Guarding: earlier requests have ended by then.
	settleTime = time.Second
	// probeRetry is the time until an incomplete probe is repeated.
	probeRetry = time.Second
	// probeInterval is the time until a complete probe is repeated.
	probeInterval = 5 * time.Minute
)

// Prober probes whether every replica of the webhook knows a budget.
type Prober interface {
	// Probe returns the replicas that answered and all ready replicas.
	Probe(context.Context, *v1alpha1.PodUnavailableBudget) (answered, all sets.Set[string], err error)
}

// guardingCheck computes the condition Guarding.
type guardingCheck struct {
	prober Prober
	clock  clock.PassiveClock

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
}

func newGuardingCheck(p Prober, c clock.PassiveClock) *guardingCheck {
	return &guardingCheck{prober: p, clock: c, states: map[types.NamespacedName]probeState{}}
}

// check returns the condition, and the time until the next check.
func (g *guardingCheck) check(ctx context.Context, b *v1alpha1.PodUnavailableBudget) (apis.Condition, time.Duration) {
	if changev1alpha1.ExemptNamespace(b.Namespace) {
		return apis.Condition{Type: v1alpha1.BudgetGuarding, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNamespaceNeverGuarded,
			Message: "this namespace is never guarded, because the cluster needs its pods to recover"}, 0
	}
	key := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
	now := g.clock.Now()
	s := g.get(key)
	if s.uid != b.UID || s.generation != b.Generation {
		s = probeState{uid: b.UID, generation: b.Generation}
	}
	if now.Before(s.next) {
		return s.condition, s.next.Sub(now)
	}
	answered, all, err := g.prober.Probe(ctx, b)
	s = evaluateProbe(s, answered, all, err, g.clock.Now())
	g.mu.Lock()
	defer g.mu.Unlock()
	g.states[key] = s
	return s.condition, s.next.Sub(now)
}

func (g *guardingCheck) get(key types.NamespacedName) probeState {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.states[key]
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
		s.condition.Message = "no replica of the webhook is ready: requests are denied until one is"
	case len(answered) == 0:
		s.condition.Status, s.condition.Reason = corev1.ConditionFalse, v1alpha1.ReasonWebhookNotCalled
		s.condition.Message = "no replica of the webhook was called: the namespace label or the webhook configuration is not in effect"
	case len(missing) > 0:
		s.condition.Message = fmt.Sprintf("no answer yet from %s", strings.Join(sets.List(missing), ", "))
	case s.allSince.IsZero():
		s.allSince, s.next = now, now.Add(settleTime)
		s.condition.Message = "every replica of the webhook has answered; waiting for earlier requests to end"
	case now.Sub(s.allSince) < settleTime:
		s.next = s.allSince.Add(settleTime)
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
