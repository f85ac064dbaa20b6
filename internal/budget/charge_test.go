package budget

import (
	"testing"

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
		pods = append(pods, Pod{Name: n, UID: types.UID("uid-" + n), ResourceVersion: "5", Available: true})
	}
	return pods
}

func charge(op v1alpha1.PodOperation, names ...string) Charge {
	return Charge{Operation: op, Pods: of(names...), Generation: 1}
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

func refund(c Charge) Charge { c.Refund = true; return c }
func try(c Charge) Charge    { c.DryRun = true; return c }

func TestCharges(t *testing.T) {
	broken := charge(del, "broken")
	broken.Pods[0].Available = false
	successor := charge(update, "a")
	successor.Pods[0].UID = "uid-next"
	for _, tc := range []struct {
		name    string
		allowed int32
		group   []Charge
		want    []bool
		left    int32
		deleted []string
		changed []string
	}{
		{"one of one", 1, []Charge{charge(del, "a")}, []bool{true}, 0, []string{"a"}, nil},
		{"two of one: the first", 1, []Charge{charge(del, "a"), charge(evict, "b")}, []bool{true, false}, 0, []string{"a"}, nil},
		{"none", 0, []Charge{charge(del, "a"), charge(update, "b")}, []bool{false, false}, 0, nil, nil},
		{"the same twice is once", 1, []Charge{charge(del, "a"), charge(del, "a")}, []bool{true, true}, 0, []string{"a"}, nil},
		{"an eviction is a deletion", 1, []Charge{charge(del, "a"), charge(evict, "a")}, []bool{true, true}, 0, []string{"a"}, nil},
		{"an in-place change", 1, []Charge{charge(update, "a"), charge(update, "b")}, []bool{true, false}, 0, nil, []string{"a"}},
		{"two operations on one pod cost one", 1, []Charge{charge(update, "a"), charge(del, "a")}, []bool{true, true}, 0, []string{"a"}, []string{"a"}},
		{"the next pod of that name costs again", 1, []Charge{charge(update, "a"), successor}, []bool{true, false}, 0, nil, []string{"a"}},
		{"all pods or none", 2, []Charge{charge(del, "a", "b", "c"), charge(del, "d", "e")}, []bool{false, true}, 0, []string{"d", "e"}, nil},
		{"an unavailable pod costs nothing", 0, []Charge{broken}, []bool{true}, 0, nil, nil},
		{"refunded, which only the controller adds to the allowed ones", 1, []Charge{charge(del, "a"), refund(charge(del, "a")), charge(del, "b")}, []bool{true, true, false}, 0, nil, nil},
		{"a repeated refund", 2, []Charge{charge(del, "a"), refund(charge(del, "a")), refund(charge(del, "a"))}, []bool{true, true, true}, 1, nil, nil},
		{"one of two operations refunded", 1, []Charge{charge(del, "a"), charge(restart, "a"), refund(charge(del, "a"))}, []bool{true, true, true}, 0, nil, []string{"a"}},
		{"an uncharged pod is not refunded", 0, []Charge{refund(charge(del, "a")), charge(del, "b")}, []bool{true, false}, 0, nil, nil},
		{"a dry run charges nothing", 1, []Charge{try(charge(del, "a")), charge(del, "b"), try(charge(del, "c"))}, []bool{true, true, false}, 0, []string{"b"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := budgetWith(tc.allowed)
			before := b.DeepCopy()
			next, verdicts := Decide(b, tc.group)
			if diff := cmp.Diff(before, b); diff != "" {
				t.Errorf("the argument was modified:\n%s", diff)
			}
			if next == nil {
				next = b
			}
			for i, v := range verdicts {
				if v.Passes != tc.want[i] {
					t.Errorf("charge %d: allowed %v", i, v.Passes)
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

// A later change that shares the charge of a resize keeps it when the resize is done.
func TestTheChargeOfAResizeIsExtendedByLaterChanges(t *testing.T) {
	at := func(op v1alpha1.PodOperation, generation int64) Charge {
		c := charge(op, "a")
		c.Pods[0].Generation = generation
		return c
	}
	const resize = v1alpha1.OperationResize
	for _, tc := range []struct {
		name  string
		group []Charge
		want  string
	}{
		{"a resize", []Charge{at(resize, 3)}, "5/uid-a/3"},
		{"repeated", []Charge{at(resize, 3), at(resize, 3)}, "5/uid-a/3"},
		{"a later resize", []Charge{at(resize, 3), at(resize, 4)}, "5/uid-a/4"},
		{"an earlier resize that arrives later", []Charge{at(resize, 4), at(resize, 3)}, "5/uid-a/4"},
		{"another image too", []Charge{at(resize, 3), at(update, 4)}, "5/uid-a"},
		{"another image first", []Charge{at(update, 3), at(resize, 4)}, "5/uid-a"},
		{"a dry run of another image", []Charge{at(resize, 3), try(at(update, 4))}, "5/uid-a/3"},
		{"deleted too", []Charge{at(resize, 3), at(del, 4)}, "5/uid-a/3"},
	} {
		next, verdicts := Decide(budgetWith(1), tc.group)
		if got := next.Status.UnavailablePods["a"]; got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
		if next.Status.UnavailableAllowed != 0 || !verdicts[len(verdicts)-1].Passes {
			t.Errorf("%s: %+v", tc.name, verdicts)
		}
	}
	for _, text := range []string{"5/uid-a/3", "5/uid-a"} {
		if got := ParseEntry(text).String(); got != text {
			t.Errorf("%q was parsed as %q", text, got)
		}
	}
	if e := ParseEntry("5"); e.UID != "" || e.ResizeGeneration != 0 {
		t.Errorf("%+v", e)
	}
}

// A request that did not charge a pod must not refund it: another request uses the
// charge.
func TestOnlyTheFirstRequestChargesAPod(t *testing.T) {
	broken := charge(del, "b")
	broken.Pods[0].Available = false
	for _, tc := range []struct {
		name  string
		group []Charge
		took  []int
	}{
		{"each its own", []Charge{charge(del, "a"), charge(del, "b")}, []int{1, 1}},
		{"the same twice", []Charge{charge(del, "a"), charge(del, "a")}, []int{1, 0}},
		{"an eviction of a deleted pod", []Charge{charge(del, "a"), charge(evict, "a")}, []int{1, 0}},
		{"another operation is a charge of its own", []Charge{charge(update, "a"), charge(del, "a")}, []int{1, 1}},
		{"one of two pods", []Charge{charge(del, "a"), charge(del, "a", "b")}, []int{1, 1}},
		{"an unavailable pod", []Charge{broken}, []int{0}},
		{"a dry run", []Charge{try(charge(del, "a")), charge(del, "a")}, []int{0, 1}},
		{"a denied request", []Charge{charge(del, "a", "b", "c"), charge(del, "a")}, []int{0, 1}},
		{"again after a refund", []Charge{charge(del, "a"), refund(charge(del, "a")), charge(del, "a")}, []int{1, 0, 1}},
	} {
		_, verdicts := Decide(budgetWith(2), tc.group)
		for i, v := range verdicts {
			if len(v.Charged) != tc.took[i] {
				t.Errorf("%s: charge %d charged %v, want %d", tc.name, i, v.Charged, tc.took[i])
			}
		}
	}
}

func TestAnUncomputedBudgetAllowsNothing(t *testing.T) {
	b := budgetWith(5)
	b.Generation = 2
	a, other := charge(del, "a"), try(charge(del, "b"))
	a.Generation, other.Generation = 2, 2
	next, verdicts := Decide(b, []Charge{a, other})
	if next != nil || verdicts[0].Passes || !verdicts[0].Unsynced || verdicts[1].Passes || !verdicts[1].Unsynced {
		t.Errorf("got %+v", verdicts)
	}
	// Charges can still be refunded.
	b.Status.DeletedPods = map[types.UID]string{"uid-a": "5"}
	if next, _ := Decide(b, []Charge{refund(charge(del, "a"))}); next == nil || len(next.Status.DeletedPods) != 0 {
		t.Errorf("not refunded: %+v", next)
	}
}

func TestAChargeOfAnotherGenerationIsOutdated(t *testing.T) {
	b := budgetWith(5)
	b.Generation, b.Status.ObservedGeneration = 2, 2
	if next, verdicts := Decide(b, []Charge{charge(del, "a")}); next != nil || verdicts[0].Passes || !verdicts[0].Outdated {
		t.Errorf("got %+v", verdicts)
	}
}

func TestProtectNotReadyJudgesUnavailablePods(t *testing.T) {
	broken := charge(del, "broken")
	broken.Pods[0].Available = false
	for allowed, want := range map[int32]bool{0: false, 1: true} {
		b := budgetWith(allowed)
		b.Spec.ProtectNotReady = true
		next, verdicts := Decide(b, []Charge{broken})
		if verdicts[0].Passes != want || next != nil {
			t.Errorf("%d allowed: %+v", allowed, verdicts[0])
		}
	}
}

// A charged pod, or another one, has crashed since: 0 is what the controller stores
// for everything below it.
func TestARefundDoesNotAllowMore(t *testing.T) {
	b := budgetWith(0)
	b.Status.TotalReplicas, b.Status.DesiredAvailable, b.Status.CurrentAvailable = 10, 9, 8
	b.Status.DeletedPods = map[types.UID]string{"uid-a": "5"}
	next, verdicts := Decide(b, []Charge{refund(charge(del, "a")), charge(del, "c")})
	if verdicts[1].Passes || len(next.Status.DeletedPods) > 0 || next.Status.UnavailableAllowed != 0 {
		t.Errorf("%+v, %+v", verdicts[1], next.Status)
	}
}

// The earlier request may end without an effect: its charge expires, or its replica
// refunds it.
func TestARequestThatUsesAChargeRenewsIt(t *testing.T) {
	b := budgetWith(1)
	b.ResourceVersion = "100"
	charged, first := Decide(b, []Charge{charge(del, "a"), charge(evict, "a")})
	if got := charged.Status.DeletedPods["uid-a"]; got != "5/100" || len(first[1].Renewed) > 0 {
		t.Fatalf("%s, %+v", got, first)
	}
	charged.ResourceVersion = "101"
	renewed, second := Decide(charged, []Charge{charge(del, "a"), charge(del, "a")})
	if renewed == nil || renewed.Status.DeletedPods["uid-a"] != "5/101" || len(second[0].Renewed) != 1 || len(second[1].Renewed) != 0 {
		t.Fatalf("%+v, %+v", renewed, second)
	}
	for by, kept := range map[string]Verdict{"the first request": first[0], "the second request": second[0]} {
		back := refund(charge(del, "a"))
		back.Pods = append(kept.Charged, kept.Renewed...)
		next, _ := Decide(renewed, []Charge{back})
		if refunded := next != nil; refunded != (by == "the second request") {
			t.Errorf("refunded for %s: %v", by, refunded)
		}
	}
	if next, _ := Decide(charged, []Charge{try(charge(del, "a"))}); next != nil {
		t.Error("a dry run renewed a charge")
	}
}
