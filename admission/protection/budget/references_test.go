package budget

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

func TestTheLastRequestRefundsACharge(t *testing.T) {
	key := types.NamespacedName{Namespace: "ns", Name: "web"}
	charge := func(asker uint64, op v1alpha1.PodOperation) budget.Request {
		return budget.Request{Operation: op, AdmissionID: asker, Pods: []budget.Pod{{Name: "a", UID: "uid-a", BecomesUnavailable: true}}}
	}
	const del, evict, update = v1alpha1.OperationDelete, v1alpha1.OperationEvict, v1alpha1.OperationUpdate
	takes := func(r *ChargeReferences, asker uint64, op v1alpha1.PodOperation) {
		c := charge(asker, op)
		r.add(key, c, c.Pods)
		r.confirm(key, c, budget.Decision{Charged: c.Pods})
	}
	shares := func(r *ChargeReferences, asker uint64, op v1alpha1.PodOperation) { r.add(key, charge(asker, op), nil) }
	leaves := func(r *ChargeReferences, asker uint64, op v1alpha1.PodOperation) bool {
		return len(r.remove(key, charge(asker, op))) > 0
	}
	for name, steps := range map[string]func(*ChargeReferences) (got, want bool){
		"alone": func(r *ChargeReferences) (bool, bool) { takes(r, 1, del); return leaves(r, 1, del), true },
		"another deletion uses it": func(r *ChargeReferences) (bool, bool) {
			takes(r, 1, del)
			shares(r, 2, del)
			return leaves(r, 1, del), false
		},
		"an eviction uses it": func(r *ChargeReferences) (bool, bool) {
			takes(r, 1, del)
			shares(r, 2, evict)
			return leaves(r, 1, del), false
		},
		"the sharing request removes it": func(r *ChargeReferences) (bool, bool) {
			takes(r, 1, del)
			shares(r, 2, del)
			return leaves(r, 2, del), false
		},
		"the last request removes it": func(r *ChargeReferences) (bool, bool) {
			takes(r, 1, del)
			shares(r, 2, del)
			leaves(r, 1, del)
			return leaves(r, 2, del), true
		},
		"another replica wrote it": func(r *ChargeReferences) (bool, bool) { shares(r, 1, del); return leaves(r, 1, del), false },
		"the outcome of the write is unknown": func(r *ChargeReferences) (bool, bool) {
			c := charge(1, del)
			r.add(key, c, c.Pods)
			return leaves(r, 1, del), false
		},
		"another replica renewed it before": func(r *ChargeReferences) (bool, bool) {
			takes(r, 1, del)
			shares(r, 2, del)
			r.confirm(key, charge(2, del), budget.Decision{Renewed: []budget.Pod{{UID: "uid-a", Before: "7", Token: "8"}}})
			leaves(r, 1, del)
			return leaves(r, 2, del), false
		},
		"an in-place change has its own charge": func(r *ChargeReferences) (bool, bool) {
			takes(r, 1, del)
			shares(r, 2, update)
			return leaves(r, 1, del), true
		},
		"a new charge after an old one": func(r *ChargeReferences) (bool, bool) {
			shares(r, 1, del)
			takes(r, 2, del)
			return leaves(r, 2, del), true
		},
		"a request that never passed": func(r *ChargeReferences) (bool, bool) { return leaves(r, 1, del), false },
	} {
		if got, want := steps(NewChargeReferences()); got != want {
			t.Errorf("%s: refunded %v", name, got)
		}
	}
}

// asks allows one request and returns a function that ends it without an answer.
func (fx *fixture) asks(t *testing.T, op v1alpha1.PodOperation) (lose func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	ask := evaluation{Guard: fx.guard, action: &Action{Operation: op, Pods: []*corev1.Pod{newPod(nil)}}, admissionID: fx.guard.References.nextID(), decision: DecisionNotCharged}
	if _, denial := ask.evaluate(ctx, fx.budget(t, "web")); denial != nil {
		t.Fatal(denial.Response.Result.Message)
	}
	return func() {
		cancel()
		if a := (Charges{&ask}).Finish(ctx, admission.Allow(DecisionCharged)); a.Response.Allowed {
			t.Error("a lost answer allowed the request")
		}
	}
}

func TestASharedChargeIsKept(t *testing.T) {
	const del, evict, update = v1alpha1.OperationDelete, v1alpha1.OperationEvict, v1alpha1.OperationUpdate
	for name, ops := range map[string][2]v1alpha1.PodOperation{
		"two deletions": {del, del}, "two evictions": {evict, evict}, "a deletion and an eviction": {del, evict}, "two changes": {update, update},
	} {
		for _, order := range [][2]int{{0, 1}, {1, 0}} {
			fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, newPod(nil))
			lose := []func(){fx.asks(t, ops[0]), fx.asks(t, ops[1])}
			lose[order[0]]()
			fx.settled(t)
			if s := fx.budget(t, "web").Status; s.UnavailableAllowed != 0 || len(s.DeletedPods)+len(s.UnavailablePods) != 1 {
				t.Errorf("%s, answer %d is lost: %+v", name, order[0], s)
			}
			lose[order[1]]()
			fx.untilRefunded(t, "web")
		}
	}
}

// settled returns after pending refunds are complete: the queue decides in order, and
// the refund for another pod is the last.
func (fx *fixture) settled(t *testing.T) {
	t.Helper()
	other := budget.Request{Operation: v1alpha1.OperationDelete, Refund: true, Pods: []budget.Pod{{Name: "other", UID: "uid-other"}}}
	for range 20 {
		if _, err := fx.guard.Commit.Do(t.Context(), types.NamespacedName{Namespace: "ns", Name: "web"}, other); err != nil {
			t.Fatal(err)
		}
	}
}

// A deletion that another replica allowed with the same charge may have taken effect
// before the refund.
func TestTheChargeOfATerminatingPodIsNotRefunded(t *testing.T) {
	terminating := newPod(func(p *corev1.Pod) { p.DeletionTimestamp, p.Finalizers = new(metav1.Now()), []string{"a"} })
	one := []budget.Pod{{Name: "web-1-a", UID: "uid-a"}}
	some := append(one, budget.Pod{Name: "gone", UID: "uid-gone"})
	for name, tc := range map[string]struct {
		now  *corev1.Pod
		of   []budget.Pod
		want int
	}{
		"terminating":                   {terminating, one, 0},
		"running":                       {newPod(nil), one, 1},
		"replaced":                      {newPod(func(p *corev1.Pod) { p.UID = "uid-next" }), one, 0},
		"one terminating, one deleted":  {terminating, some, 0},
		"one running, one deleted":      {newPod(nil), some, 1},
		"one replaced, another deleted": {newPod(func(p *corev1.Pod) { p.UID = "uid-next" }), some, 0},
	} {
		fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, tc.now)
		e := evaluation{Guard: fx.guard, action: &Action{Selector: labels.Everything()}}
		c := budget.Request{Operation: v1alpha1.OperationDelete, Pods: tc.of}
		if left := e.unaffectedPods(t.Context(), budgetRequest{types.NamespacedName{Namespace: "ns", Name: "web"}, c}); len(left) != tc.want {
			t.Errorf("%s: refunded: %v", name, left)
		}
	}
}

// Refunds are decided in order with other requests, which may have referenced the
// charge in the meantime.
func TestAReferencedChargeIsNotRefunded(t *testing.T) {
	pods := []budget.Pod{{Name: "a", UID: "uid-a", ResourceVersion: "5", BecomesUnavailable: true}}
	first := budget.Request{Operation: v1alpha1.OperationDelete, Pods: pods, Generation: 1, AdmissionID: 1}
	second := first
	second.AdmissionID = 2
	for name, tc := range map[string]struct {
		group func(back budget.Request) []budget.Request
		kept  int
	}{
		"no other request":       {func(back budget.Request) []budget.Request { return []budget.Request{back} }, 0},
		"another request before": {func(back budget.Request) []budget.Request { return []budget.Request{second, back} }, 1},
		"another request after":  {func(back budget.Request) []budget.Request { return []budget.Request{back, second} }, 0},
	} {
		r := NewChargeReferences()
		d := r.decide(newBudget("web", 1, nil), []budget.Request{first})
		key, back := types.NamespacedName{Namespace: "ns", Name: "web"}, first
		r.confirm(key, first, d.Answers[0])
		back.Pods, back.Refund = r.remove(key, first), true
		after := r.decide(d.Next, tc.group(back))
		b := d.Next
		if after.Changed {
			b = after.Next
		}
		if got := len(b.Status.DeletedPods); got != tc.kept || after.Answers[len(after.Answers)-1].Admitted != (name != "another request after") {
			t.Errorf("%s: %+v", name, b.Status)
		}
	}
}

// A request about the same pod fails, because the write to the budget is denied. Its
// reference must not keep the charge of the other request, which is lost later.
func TestARequestThatFailedDoesNotKeepTheChargeOfAnother(t *testing.T) {
	fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 1, nil)}, newPod(nil))
	lose := fx.asks(t, v1alpha1.OperationDelete)
	var denies atomic.Bool
	denies.Store(true)
	fx.client.PrependReactor("update", "podunavailablebudgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return denies.Load(), nil, apierrs.NewForbidden(schema.GroupResource{Resource: "podunavailablebudgets"}, "web", errors.New("by a policy"))
	})
	if a := fx.ask(t, eviction(t, nil)); !admission.Undecided(a.Response) {
		t.Fatalf("got %s %+v", a.Decision, a.Response.Result)
	}
	denies.Store(false)
	lose()
	fx.untilRefunded(t, "web")
}
