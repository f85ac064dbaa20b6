package perf

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	policy "github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// crashes are the measurements of TestCrash.
type crashes struct {
	Machine string
	// Budgets is the number of budgets, each with one pod.
	Budgets int
	// OneByOne are the times from a crash until the budget counts the pod as unavailable, of pods that crash one
	// after the other.
	OneByOne []time.Duration
	// AtOnce is the time from the first of as many crashes at once until all budgets count them.
	AtOnce time.Duration
}

// maxCrashDelay is the goal for 99 % of the crashes one after the other, in seconds.
const maxCrashDelay = 1

// markdown renders the figures.
func (m crashes) markdown() string {
	milli := func(d time.Duration) string { return fmt.Sprintf("%.0f ms", d.Seconds()*1000) }
	var s strings.Builder
	fmt.Fprintf(&s, "%s There are %d budgets, each with one simulated pod. A pod crashes when the API server has answered the write of its status, which is "+
		"not Ready. The delay is from that answer until a watch shows that the budget counts the pod as unavailable.\n\n", m.Machine, m.Budgets)
	s.WriteString("| measure | Breakwater |\n|---|---|\n")
	row := func(measure string, d time.Duration) { fmt.Fprintf(&s, "| %s | %s |\n", measure, milli(d)) }
	row(fmt.Sprintf("delay of %d crashes, one after the other, p50", len(m.OneByOne)), quantile(m.OneByOne, 0.5))
	row("the same, p99", quantile(m.OneByOne, 0.99))
	row("the same, longest", quantile(m.OneByOne, 1))
	row(fmt.Sprintf("from the first write of %d crashes at once until all budgets count them", len(m.OneByOne)), m.AtOnce)
	return s.String()
}

// figures returns the figures of crashes one after the other, with their goal, and that of crashes at once.
func (m crashes) figures() []figure {
	of := func(measure string, d time.Duration, goal *goal) figure {
		return figure{Work: fmt.Sprintf("a crash, %d budgets", m.Budgets), Measure: measure, Value: d.Seconds() * 1000, Unit: "ms", Goal: goal}
	}
	return []figure{
		of("delay until the budget counts it, p50", quantile(m.OneByOne, 0.5), nil),
		of("delay until the budget counts it, p99", quantile(m.OneByOne, 0.99), new(atMost(maxCrashDelay*1000))),
		of(fmt.Sprintf("until the budgets count %d crashes at once", len(m.OneByOne)), m.AtOnce, nil),
	}
}

// availability records what a watch shows of budgets with one pod each.
type availability struct {
	mu sync.Mutex
	// guarding are the budgets that are Guarding and whose pod is available.
	guarding map[types.NamespacedName]bool
	// unavailable is the time since which a budget in guarding counts its pod as unavailable.
	unavailable map[types.NamespacedName]time.Time
}

func newAvailability() *availability {
	return &availability{guarding: map[types.NamespacedName]bool{}, unavailable: map[types.NamespacedName]time.Time{}}
}

func (a *availability) see(e watch.EventType, b *policy.PodUnavailableBudget, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}
	switch {
	case e == watch.Deleted:
		delete(a.guarding, key)
	case b.Status.CurrentAvailable > 0:
		a.guarding[key] = b.Status.GetCondition(policy.BudgetGuarding).IsTrue()
		delete(a.unavailable, key)
	case a.guarding[key] && a.unavailable[key].IsZero():
		a.unavailable[key] = at
	}
}

// ready returns the number of budgets that are Guarding and whose pod was available.
func (a *availability) ready() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, yes := range a.guarding {
		if yes {
			n++
		}
	}
	return n
}

// since returns the time since which a budget counts its pod as unavailable; zero if it does not.
func (a *availability) since(key types.NamespacedName) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.unavailable[key]
}
