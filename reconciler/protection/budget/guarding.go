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
	// settling is how long after every replica was heard a budget guards:
	// requests that passed before have ended by then.
	settleTime = time.Second
	// hurry is when a probe that did not reach all is sent again.
	probeRetry = time.Second
	// selfCheck is when a guard that is whole is probed again.
	probeInterval = 5 * time.Minute
)

// Prober asks every replica of the webhook whether it knows a budget.
type Prober interface {
	// Probe returns the replicas that answered, and those that there are.
	Probe(context.Context, *v1alpha1.PodUnavailableBudget) (heard, all sets.Set[string], err error)
}

// guarding keeps the condition Guarding.
type guardingCheck struct {
	prober Prober
	clock  clock.PassiveClock

	mu sync.Mutex
	// heard is what is known, by budget.
	states map[types.NamespacedName]probeState
}

// hearing is what is known of a budget at a generation.
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

// look returns the condition, and when to look again.
func (g *guardingCheck) check(ctx context.Context, b *v1alpha1.PodUnavailableBudget) (apis.Condition, time.Duration) {
	if changev1alpha1.NeverGuarded(b.Namespace) {
		return apis.Condition{Type: v1alpha1.BudgetGuarding, Status: corev1.ConditionFalse, Reason: v1alpha1.ReasonNamespaceNeverGuarded,
			Message: "pods of this namespace are never guarded: the cluster needs them to come up again"}, 0
	}
	key := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
	now := g.clock.Now()
	h := g.get(key)
	if h.uid != b.UID || h.generation != b.Generation {
		h = probeState{uid: b.UID, generation: b.Generation}
	}
	if now.Before(h.next) {
		return h.condition, h.next.Sub(now)
	}
	heard, all, err := g.prober.Probe(ctx, b)
	h = evaluateProbe(h, heard, all, err, g.clock.Now())
	g.mu.Lock()
	defer g.mu.Unlock()
	g.states[key] = h
	return h.condition, h.next.Sub(now)
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

// judge decides what a probe means.
func evaluateProbe(h probeState, heard, all sets.Set[string], err error, now time.Time) probeState {
	h.condition = apis.Condition{Type: v1alpha1.BudgetGuarding, Status: corev1.ConditionUnknown, Reason: v1alpha1.ReasonProbing}
	h.next = now.Add(probeRetry)
	missing := all.Difference(heard)
	switch {
	case err != nil:
		h.condition.Message = "the probe failed: " + err.Error()
	case len(all) == 0:
		h.condition.Status, h.condition.Reason = corev1.ConditionFalse, v1alpha1.ReasonWebhookNotCalled
		h.condition.Message = "no replica of the webhook is ready: requests are refused until one is"
	case len(heard) == 0:
		h.condition.Status, h.condition.Reason = corev1.ConditionFalse, v1alpha1.ReasonWebhookNotCalled
		h.condition.Message = "no replica of the webhook was asked: the label of the namespace, or the webhook configuration, is not in force"
	case len(missing) > 0:
		h.condition.Message = fmt.Sprintf("not heard yet: %s", strings.Join(sets.List(missing), ", "))
	case h.allSince.IsZero():
		h.allSince, h.next = now, now.Add(settleTime)
		h.condition.Message = "every replica of the webhook was heard; requests that passed before are waited for"
	case now.Sub(h.allSince) < settleTime:
		h.next = h.allSince.Add(settleTime)
		h.condition.Message = "every replica of the webhook was heard; requests that passed before are waited for"
	default:
		h.condition.Status, h.condition.Reason = corev1.ConditionTrue, v1alpha1.ReasonAllReplicasAnswered
		h.next = now.Add(probeInterval)
	}
	if h.condition.Status == corev1.ConditionFalse {
		h.allSince = time.Time{}
	}
	return h
}
