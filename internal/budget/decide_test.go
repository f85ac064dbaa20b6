package budget

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// pod returns an available pod.
func pod(name, rv string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: rv},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func of(names ...string) (pods []Pod) {
	for _, n := range names {
		pods = append(pods, Pod{Name: n, UID: types.UID("uid-" + n), ResourceVersion: "5", BecomesUnavailable: true})
	}
	return pods
}

func charge(op v1alpha1.PodOperation, names ...string) Request {
	return Request{Operation: op, Pods: of(names...), Generation: 1}
}

func budgetWith(allowed int32) *v1alpha1.PodUnavailableBudget {
	b := &v1alpha1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Generation: 1}}
	b.Status.ObservedGeneration, b.Status.UnavailableAllowed = 1, allowed
	return b
}

const (
	del     = v1alpha1.OperationDelete
	evict   = v1alpha1.OperationEvict
	update  = v1alpha1.OperationUpdate
	restart = v1alpha1.OperationRestart
)

func refund(r Request) Request { r.Refund = true; return r }
func try(r Request) Request    { r.DryRun = true; return r }

func TestCharges(t *testing.T) {
	broken := charge(del, "broken")
	broken.Pods[0].BecomesUnavailable = false
	successor := charge(update, "a")
	successor.Pods[0].UID = "uid-next"
	for _, tc := range []struct {
		name    string
		allowed int32
		group   []Request
		want    []bool
		left    int32
		deleted []string
		changed []string
	}{
		{"one of one", 1, []Request{charge(del, "a")}, []bool{true}, 0, []string{"a"}, nil},
		{"two of one: the first", 1, []Request{charge(del, "a"), charge(evict, "b")}, []bool{true, false}, 0, []string{"a"}, nil},
		{"none", 0, []Request{charge(del, "a"), charge(update, "b")}, []bool{false, false}, 0, nil, nil},
		{"the same twice is once", 1, []Request{charge(del, "a"), charge(del, "a")}, []bool{true, true}, 0, []string{"a"}, nil},
		{"an eviction is a deletion", 1, []Request{charge(del, "a"), charge(evict, "a")}, []bool{true, true}, 0, []string{"a"}, nil},
		{"an in-place change", 1, []Request{charge(update, "a"), charge(update, "b")}, []bool{true, false}, 0, nil, []string{"a"}},
		{"two operations on one pod cost one", 1, []Request{charge(update, "a"), charge(del, "a")}, []bool{true, true}, 0, []string{"a"}, []string{"a"}},
		{"the next pod of that name costs again", 1, []Request{charge(update, "a"), successor}, []bool{true, false}, 0, nil, []string{"a"}},
		{"all pods or none", 2, []Request{charge(del, "a", "b", "c"), charge(del, "d", "e")}, []bool{false, true}, 0, []string{"d", "e"}, nil},
		{"an unavailable pod costs nothing", 0, []Request{broken}, []bool{true}, 0, nil, nil},
		{"refunded, which only the controller adds to the allowed ones", 1, []Request{charge(del, "a"), refund(charge(del, "a")), charge(del, "b")}, []bool{true, true, false}, 0, nil, nil},
		{"a repeated refund", 2, []Request{charge(del, "a"), refund(charge(del, "a")), refund(charge(del, "a"))}, []bool{true, true, true}, 1, nil, nil},
		{"one of two operations refunded", 1, []Request{charge(del, "a"), charge(restart, "a"), refund(charge(del, "a"))}, []bool{true, true, true}, 0, nil, []string{"a"}},
		{"an uncharged pod is not refunded", 0, []Request{refund(charge(del, "a")), charge(del, "b")}, []bool{true, false}, 0, nil, nil},
		{"a dry run charges nothing", 1, []Request{try(charge(del, "a")), charge(del, "b"), try(charge(del, "c"))}, []bool{true, true, false}, 0, []string{"b"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := budgetWith(tc.allowed)
			before := b.DeepCopy()
			next, decisions := Decide(b, tc.group)
			if diff := cmp.Diff(before, b); diff != "" {
				t.Errorf("the argument was modified:\n%s", diff)
			}
			if next == nil {
				next = b
			}
			for i, d := range decisions {
				if d.Admitted != tc.want[i] {
					t.Errorf("request %d: admitted %v", i, d.Admitted)
				}
			}
			if next.Status.UnavailableAllowed != tc.left {
				t.Errorf("%d left, want %d", next.Status.UnavailableAllowed, tc.left)
			}
			same(t, "deletedPods", next.Status.DeletedPods, tc.deleted, func(n string) (types.UID, string) { return types.UID("uid-" + n), "5" })
			same(t, "unavailablePods", next.Status.UnavailablePods, tc.changed, func(n string) (string, string) { return n, "5/uid-" + n })
		})
	}
}

func same[K ~string](t *testing.T, what string, got map[K]string, names []string, entry func(string) (K, string)) {
	t.Helper()
	want := map[K]string{}
	for _, n := range names {
		k, v := entry(n)
		want[k] = v
	}
	if len(got)+len(want) > 0 && !cmp.Equal(got, want) {
		t.Errorf("%s: %s", what, cmp.Diff(want, got))
	}
}

// The charge is kept until the effects of all changes that share it are done.
func TestALaterChangeAddsItsEffectsToTheCharge(t *testing.T) {
	with := func(op v1alpha1.PodOperation, effects string) Request {
		r := charge(op, "a")
		r.Pods[0].Effects = parseEffects(effects)
		return r
	}
	const image, sidecar, again = "web.1.a", "mesh.2.b", "web.1.c"
	for _, tc := range []struct {
		name  string
		group []Request
		want  string
	}{
		{"an image", []Request{with(update, image)}, "5/uid-a/100/" + image},
		{"repeated", []Request{with(update, image), with(update, image)}, "5/uid-a/100/" + image},
		{"a sidecar too", []Request{with(update, image), with(update, sidecar)}, "5/uid-a/100/" + image + "," + sidecar},
		{"the same container again", []Request{with(update, image), with(update, again)}, "5/uid-a/100/" + image},
		{"a restart of the same container too", []Request{with(update, image), with(restart, "web.1")}, "5/uid-a/100/" + image + ",web.1"},
		{"a restart too", []Request{with(update, image), with(restart, "web.7")}, "5/uid-a/100/" + image + ",web.7"},
		{"a restart of two containers", []Request{with(restart, "mesh.2,.2-700,web.1,.1-600")}, "5/uid-a/100/mesh.2,.2-700,web.1,.1-600"},
		{"a restart with a longer grace period", []Request{with(restart, "web.1,.1-30"), with(restart, "web.1,.1-600")}, "5/uid-a/100/web.1,.1-600"},
		{"a restart with a shorter grace period", []Request{with(restart, "web.1,.1-600"), with(restart, "web.1")}, "5/uid-a/100/web.1,.1-600"},
		{"a label too", []Request{with(update, image), with(update, "")}, "5/uid-a/100/" + image},
		{"a label", []Request{with(update, "")}, "5/uid-a/100"},
		{"a dry run of a sidecar", []Request{with(update, image), try(with(update, sidecar))}, "5/uid-a/100/" + image},
		{"deleted too", []Request{with(update, image), with(del, "")}, "5/uid-a/100/" + image},
	} {
		b := budgetWith(1)
		b.ResourceVersion = "100"
		next, decisions := Decide(b, tc.group)
		if got := next.Status.UnavailablePods["a"]; got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
		if next.Status.UnavailableAllowed != 0 || !decisions[len(decisions)-1].Admitted {
			t.Errorf("%s: %+v", tc.name, decisions)
		}
	}
	for _, text := range []string{"5/uid-a/100/web.1.a,mesh.2,job.3,.3-60", "5/uid-a/100", "5/uid-a"} {
		if got := ParseEntry(text).String(); got != text {
			t.Errorf("%q was parsed as %q", text, got)
		}
	}
	for _, text := range []string{"5", "5/uid-a/3/", "5/uid-a/3/4", "5/uid-a/3/web.", "5/uid-a/3/web.1..60.1", "5/uid-a/3/.1-60"} {
		if e := ParseEntry(text); len(e.Effects) > 0 {
			t.Errorf("%q: %+v", text, e)
		}
	}
	for text, want := range map[string]time.Duration{"5/uid-a/3/web.1,mesh.2": 0, "5/uid-a/3/web.1,.1-60,mesh.2,.2-30": 90 * time.Second, "5/uid-a/3/web.1,.1--1": 0,
		"5/uid-a/3/web.1,.1-no": 0, "5/uid-a/3/web.1,.1-9223372036854775807,mesh.2,.2-30": 24 * time.Hour} {
		if got := ParseEntry(text).Grace(); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// A request that did not charge a pod must not refund it: another request uses the
// charge.
func TestOnlyTheFirstRequestChargesAPod(t *testing.T) {
	broken := charge(del, "b")
	broken.Pods[0].BecomesUnavailable = false
	for _, tc := range []struct {
		name  string
		group []Request
		took  []int
	}{
		{"each its own", []Request{charge(del, "a"), charge(del, "b")}, []int{1, 1}},
		{"the same twice", []Request{charge(del, "a"), charge(del, "a")}, []int{1, 0}},
		{"an eviction of a deleted pod", []Request{charge(del, "a"), charge(evict, "a")}, []int{1, 0}},
		{"another operation is a charge of its own", []Request{charge(update, "a"), charge(del, "a")}, []int{1, 1}},
		{"one of two pods", []Request{charge(del, "a"), charge(del, "a", "b")}, []int{1, 1}},
		{"an unavailable pod", []Request{broken}, []int{0}},
		{"a dry run", []Request{try(charge(del, "a")), charge(del, "a")}, []int{0, 1}},
		{"a denied request", []Request{charge(del, "a", "b", "c"), charge(del, "a")}, []int{0, 1}},
		{"again after a refund", []Request{charge(del, "a"), refund(charge(del, "a")), charge(del, "a")}, []int{1, 0, 1}},
	} {
		_, decisions := Decide(budgetWith(2), tc.group)
		for i, d := range decisions {
			if len(d.Charged) != tc.took[i] {
				t.Errorf("%s: request %d charged %v, want %d", tc.name, i, d.Charged, tc.took[i])
			}
		}
	}
}

// Otherwise a denial says that all pods are available.
func TestADecisionIsBasedOnTheChargesBeforeItInItsGroup(t *testing.T) {
	b := budgetWith(1)
	b.Status.TotalReplicas, b.Status.DesiredAvailable, b.Status.CurrentAvailable = 10, 9, 10
	next, decisions := Decide(b, []Request{charge(del, "a"), charge(del, "b")})
	if want := (Numbers{Total: 10, Desired: 9, Current: 9}); decisions[1].Numbers != want || decisions[1].Admitted {
		t.Errorf("got %+v, want %+v", decisions[1], want)
	}
	if decisions[0].EarlierCharges != 0 || decisions[1].EarlierCharges != 1 {
		t.Errorf("%d and %d earlier charges, want 0 and 1", decisions[0].EarlierCharges, decisions[1].EarlierCharges)
	}
	if next.Status.CurrentAvailable != 10 {
		t.Errorf("the status has %d available: only the controller writes them", next.Status.CurrentAvailable)
	}
}

func TestAnUncomputedBudgetAllowsNothing(t *testing.T) {
	b := budgetWith(5)
	b.Generation = 2
	a, other := charge(del, "a"), try(charge(del, "b"))
	a.Generation, other.Generation = 2, 2
	next, decisions := Decide(b, []Request{a, other})
	if next != nil || decisions[0].Admitted || !decisions[0].Unsynced || decisions[1].Admitted || !decisions[1].Unsynced {
		t.Errorf("got %+v", decisions)
	}
	// Charges can still be refunded.
	b.Status.DeletedPods = map[types.UID]string{"uid-a": "5"}
	if next, _ := Decide(b, []Request{refund(charge(del, "a"))}); next == nil || len(next.Status.DeletedPods) != 0 {
		t.Errorf("not refunded: %+v", next)
	}
}

func TestAChargeOfAnotherGenerationIsOutdated(t *testing.T) {
	b := budgetWith(5)
	b.Generation, b.Status.ObservedGeneration = 2, 2
	if next, decisions := Decide(b, []Request{charge(del, "a")}); next != nil || decisions[0].Admitted || !decisions[0].Outdated {
		t.Errorf("got %+v", decisions)
	}
}

func TestProtectNotReadyProtectsUnavailablePods(t *testing.T) {
	broken := charge(del, "broken")
	broken.Pods[0].BecomesUnavailable = false
	for allowed, want := range map[int32]bool{0: false, 1: true} {
		b := budgetWith(allowed)
		b.Spec.ProtectNotReady, b.Status.TotalReplicas = true, 1
		next, decisions := Decide(b, []Request{broken})
		if decisions[0].Admitted != want || next != nil {
			t.Errorf("%d allowed: %+v", allowed, decisions[0])
		}
	}
}

// A budget of 0 pods allows 0, so a scale-down of broken pods to 0 would never end.
func TestProtectNotReadyProtectsNoPodThatItsOwnersDoNotWant(t *testing.T) {
	broken, available := charge(del, "broken"), charge(del, "a")
	broken.Pods[0].BecomesUnavailable = false
	for _, tc := range []struct {
		name    string
		request Request
		total   int32
		unknown string
		want    bool
	}{
		{"a pod that is not available", broken, 0, "", true},
		{"an available pod", available, 0, "", false},
		{"the owners want a pod", broken, 1, "", false},
		{"unknown replicas", broken, 0, "no scale subresource", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := budgetWith(0)
			b.Spec.ProtectNotReady, b.Status.TotalReplicas = true, tc.total
			if tc.unknown != "" {
				b.GetConditionSet().Manage(b.GetStatus()).MarkFalse(v1alpha1.BudgetSynced, v1alpha1.ReasonOwnersUnknown, "%s", tc.unknown)
			}
			if _, decisions := Decide(b, []Request{tc.request}); decisions[0].Admitted != tc.want {
				t.Errorf("got %+v", decisions[0])
			}
		})
	}
}

// A charged pod, or another one, has crashed since: 0 is what the controller stores
// for everything below it.
func TestARefundDoesNotAllowMore(t *testing.T) {
	b := budgetWith(0)
	b.Status.TotalReplicas, b.Status.DesiredAvailable, b.Status.CurrentAvailable = 10, 9, 8
	b.Status.DeletedPods = map[types.UID]string{"uid-a": "5"}
	next, decisions := Decide(b, []Request{refund(charge(del, "a")), charge(del, "c")})
	if decisions[1].Admitted || len(next.Status.DeletedPods) > 0 || next.Status.UnavailableAllowed != 0 {
		t.Errorf("%+v, %+v", decisions[1], next.Status)
	}
}

// The earlier request may end without an effect: its charge expires, or its replica
// refunds it.
func TestARequestThatUsesAChargeRenewsIt(t *testing.T) {
	for name, tc := range map[string]struct {
		op, other v1alpha1.PodOperation
		charge    func(*v1alpha1.PodUnavailableBudget) string
		want      [2]string
	}{
		"a deletion": {del, evict, func(b *v1alpha1.PodUnavailableBudget) string { return b.Status.DeletedPods["uid-a"] }, [2]string{"5/100", "5/101"}},
		"an update":  {update, restart, func(b *v1alpha1.PodUnavailableBudget) string { return b.Status.UnavailablePods["a"] }, [2]string{"5/uid-a/100", "5/uid-a/101"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := budgetWith(1)
			b.ResourceVersion = "100"
			charged, first := Decide(b, []Request{charge(tc.op, "a"), charge(tc.other, "a")})
			if got := tc.charge(charged); got != tc.want[0] || len(first[1].Renewed) > 0 {
				t.Fatalf("%s, %+v", got, first)
			}
			charged.ResourceVersion = "101"
			renewed, second := Decide(charged, []Request{charge(tc.op, "a"), charge(tc.op, "a")})
			if renewed == nil || tc.charge(renewed) != tc.want[1] || len(second[0].Renewed) != 1 || len(second[1].Renewed) != 0 {
				t.Fatalf("%+v, %+v", renewed, second)
			}
			for by, kept := range map[string]Decision{"the first request": first[0], "the second request": second[0]} {
				back := refund(charge(tc.op, "a"))
				back.Pods = append(kept.Charged, kept.Renewed...)
				next, _ := Decide(renewed, []Request{back})
				if refunded := next != nil; refunded != (by == "the second request") {
					t.Errorf("refunded for %s: %v", by, refunded)
				}
			}
			if next, _ := Decide(charged, []Request{try(charge(tc.op, "a"))}); next != nil {
				t.Error("a dry run renewed a charge")
			}
		})
	}
}
