package budget

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

func terminating(p *corev1.Pod) *corev1.Pod {
	p.DeletionTimestamp = &metav1.Time{}
	return p
}

func unready(p *corev1.Pod) *corev1.Pod {
	p.Status.Conditions[0].Status = corev1.ConditionFalse
	return p
}

// A charge is kept until the watch shows its outcome. At any time the pod is counted
// as unavailable exactly once.
func TestTheOutcomeOfACharge(t *testing.T) {
	for _, tc := range []struct {
		name             string
		pod              *corev1.Pod // besides b and c, which are available
		deleted, changed string      // resourceVersion at which a is charged
		cache            string
		elsewhere        bool // exists, but is not covered
		expired          bool
		kept             bool
		current          int32
		returned         int
	}{
		{name: "deleted, not seen yet", pod: pod("a", "5"), deleted: "5", cache: "9", kept: true, current: 2},
		{name: "deleted, terminating", pod: terminating(pod("a", "6")), deleted: "5", cache: "9", current: 2},
		{name: "deleted, completed", deleted: "5", cache: "9", current: 2},
		{name: "deleted, missing in an older cache", deleted: "12", cache: "9", kept: true, current: 2},
		{name: "deleted, the cache is empty", deleted: "5", cache: "", kept: true, current: 2},
		{name: "deleted, missing in an older cache, expired", deleted: "12", cache: "9", expired: true, current: 2},
		{name: "deleted, not covered anymore", deleted: "5", cache: "4", elsewhere: true, current: 2},
		{name: "deleted, only not Ready", pod: unready(pod("a", "6")), deleted: "5", cache: "9", kept: true, current: 2},
		{name: "deleted, no effect", pod: pod("a", "5"), deleted: "5", cache: "9", expired: true, current: 3, returned: 1},
		{name: "deleted, not Ready, expired", pod: unready(pod("a", "6")), deleted: "5", cache: "9", expired: true, current: 2, returned: 1},

		{name: "changed, not seen yet", pod: pod("a", "5"), changed: "5", cache: "9", kept: true, current: 2},
		{name: "changed, still available", pod: pod("a", "6"), changed: "5", cache: "9", kept: true, current: 2},
		{name: "changed, not ready", pod: unready(pod("a", "6")), changed: "5", cache: "9", current: 2},
		{name: "changed, an old state of the pod", pod: unready(pod("a", "4")), changed: "5", cache: "9", kept: true, current: 2},
		{name: "changed, deleted", changed: "5", cache: "9", current: 2},
		{name: "changed, not covered anymore", changed: "5", cache: "9", elsewhere: true, current: 2},
		{name: "changed, no effect", pod: pod("a", "6"), changed: "5", cache: "9", expired: true, current: 3, returned: 1},
		{name: "changed and deleted", pod: pod("a", "6"), changed: "5", deleted: "6", cache: "9", kept: true, current: 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := budgetWith(0)
			b.Spec = maxUnavailable("1")
			if tc.deleted != "" {
				b.Status.DeletedPods = map[types.UID]string{"uid-a": tc.deleted}
			}
			if tc.changed != "" {
				b.Status.UnavailablePods = map[string]string{"a": tc.changed + "/uid-a"}
			}
			pods := []*corev1.Pod{pod("b", "1"), pod("c", "1")}
			if tc.pod != nil {
				pods = append(pods, tc.pod)
			}
			d := Derive(b, Observed{Pods: pods, Total: 3, ResourceVersion: tc.cache,
				ExistsUncovered: func(types.UID) bool { return tc.elsewhere },
				KeepSettled:     func(string) bool { return false },
				Expired:         func(key string) bool { return tc.expired && strings.Contains(key, "uid-a") }})
			if kept := len(d.Deleted)+len(d.Unavailable) > 0; kept != tc.kept {
				t.Errorf("kept %v: %v %v", kept, d.Deleted, d.Unavailable)
			}
			if d.Current != tc.current || d.Allowed != tc.current-2 || d.Refunded != tc.returned {
				t.Errorf("got %+v", d)
			}
		})
	}
}

// A pod crashed and was replaced, and the deletion of the replacement was allowed. The
// watch has none of that yet: to it, all pods of the owner are available.
func TestAChargedPodThatTheWatchDoesNotHaveMayReplaceAnAvailableOne(t *testing.T) {
	for name, status := range map[string]v1alpha1.PodUnavailableBudgetStatus{
		"deleted": {DeletedPods: map[types.UID]string{"uid-new": "12/token"}},
		"changed": {UnavailablePods: map[string]string{"new": "12/uid-new"}},
	} {
		b := budgetWith(0)
		b.Spec, b.Status = maxUnavailable("1"), status
		d := Derive(b, Observed{Pods: []*corev1.Pod{pod("a", "1"), pod("b", "1")}, Total: 2, ResourceVersion: "9",
			ExistsUncovered: never[types.UID], Expired: never[string], KeepSettled: never[string]})
		if d.Current != 2 || d.Allowed != 0 {
			t.Errorf("%s: got %+v", name, d)
		}
	}
}

func TestARecreatedPodDoesNotInheritACharge(t *testing.T) {
	b := budgetWith(0)
	b.Spec = maxUnavailable("1")
	b.Status.UnavailablePods = map[string]string{"a": "5/uid-before"}
	d := Derive(b, Observed{Pods: []*corev1.Pod{pod("a", "8")}, Total: 1, ResourceVersion: "9",
		ExistsUncovered: never[types.UID], Expired: never[string], KeepSettled: never[string]})
	if d.Current != 1 || len(d.Unavailable) != 0 {
		t.Errorf("got %+v", d)
	}
}

// A pod was charged, and its owner cannot be read anymore. The surge pods replace it in CURRENT.
func TestAChargedPodThatMayBeCoveredStaysCharged(t *testing.T) {
	for name, status := range map[string]v1alpha1.PodUnavailableBudgetStatus{
		"deleted": {DeletedPods: map[types.UID]string{"uid-c": "5/token"}},
		"changed": {UnavailablePods: map[string]string{"c": "5/uid-c"}},
	} {
		b := budgetWith(0)
		b.Spec, b.Status = maxUnavailable("1"), status
		d := Derive(b, Observed{Pods: []*corev1.Pod{pod("a", "1"), pod("b", "1")}, MayBeCovered: []*corev1.Pod{pod("c", "5"), pod("d", "1")},
			Total: 2, ResourceVersion: "9", ExistsUncovered: never[types.UID], Expired: never[string], KeepSettled: never[string]})
		if d.Current != 2 || d.Allowed != 0 {
			t.Errorf("%s: got %+v", name, d)
		}
	}
}

func never[T any](T) bool { return false }

// The API server may repeat a completed deletion.
func TestASettledChargeIsKeptAndCostsNothing(t *testing.T) {
	b := budgetWith(0)
	b.Spec = maxUnavailable("1")
	b.Status.DeletedPods = map[types.UID]string{"uid-a": "5", "uid-gone": "6"}
	d := Derive(b, Observed{Pods: []*corev1.Pod{terminating(pod("a", "6")), pod("b", "1"), pod("c", "1")}, Total: 2, ResourceVersion: "9",
		ExistsUncovered: never[types.UID], Expired: never[string], KeepSettled: func(string) bool { return true }})
	if d.KeptSettled != 2 || len(d.Deleted) != 2 || d.Current != 2 || d.Allowed != 1 {
		t.Errorf("got %+v", d)
	}
}
