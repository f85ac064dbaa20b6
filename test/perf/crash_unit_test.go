package perf

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"knative.dev/pkg/apis"

	policy "github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

func TestACrashIsCountedSinceTheFirstStatusWithoutThePod(t *testing.T) {
	budget := func(available int32, guarding string) *policy.PodUnavailableBudget {
		b := &policy.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
		b.Status.CurrentAvailable = available
		b.Status.Conditions = append(b.Status.Conditions, apis.Condition{Type: policy.BudgetGuarding, Status: "True"})
		if guarding != "" {
			b.Status.Conditions[0].Status = "Unknown"
		}
		return b
	}
	key := types.NamespacedName{Namespace: "ns", Name: "web"}
	a := newAvailability()
	for i, b := range []*policy.PodUnavailableBudget{budget(0, "not yet"), budget(1, "not yet")} {
		a.see(watch.Modified, b, second(i))
		if a.ready() != 0 || !a.since(key).IsZero() {
			t.Errorf("a new budget: %d ready, unavailable since %s", a.ready(), a.since(key))
		}
	}
	a.see(watch.Modified, budget(1, ""), second(3))
	if a.ready() != 1 || !a.since(key).IsZero() {
		t.Errorf("the pod is available: %d ready, unavailable since %s", a.ready(), a.since(key))
	}
	a.see(watch.Modified, budget(0, ""), second(4))
	a.see(watch.Modified, budget(0, ""), second(5))
	if got := a.since(key); got != second(4) {
		t.Errorf("unavailable since %s", got)
	}
}

func TestTheTableOfCrashesShowsTheQuantiles(t *testing.T) {
	m := crashes{
		Machine: "Here.", Budgets: 10,
		OneByOne: []time.Duration{30 * time.Millisecond, 2 * time.Second, 40 * time.Millisecond}, AtOnce: time.Second,
	}
	want := `| measure | Breakwater |
|---|---|
| delay of 3 crashes, one after the other, p50 | 40 ms |
| the same, p99 | 2000 ms |
| the same, longest | 2000 ms |
| from the first write of 3 crashes at once until all budgets count them | 1000 ms |
`
	if got := m.markdown(); !strings.HasSuffix(got, "\n\n"+want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, x := range m.figures() {
		if x.Goal != nil && x.Goal.met(x.Value) {
			t.Errorf("%+v is met", x)
		}
	}
}
