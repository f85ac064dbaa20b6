package chaos

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podOf returns a Running pod.
func podOf(name string, ready, terminating bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	if ready {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	if terminating {
		p.DeletionTimestamp = &metav1.Time{}
	}
	return p
}

func TestDeletionsLeaveTheMinimumAvailable(t *testing.T) {
	terminate := func(a *Availability, name string) { a.Observe(podOf(name, true, true), false) }
	remove := func(a *Availability, name string) { a.Observe(podOf(name, true, true), true) }
	for name, tc := range map[string]struct {
		do     func(*Availability)
		want   []string
		lowest int
	}{
		"no deletion": {func(*Availability) {}, nil, 3},
		"one deletion is admitted": {func(a *Availability) {
			a.Request("a")
			terminate(a, "a")
			remove(a, "a")
		}, nil, 2},
		"two deletions are one too many": {func(a *Availability) {
			a.Request("a")
			a.Request("b")
			remove(a, "a")
			terminate(a, "b")
		}, []string{"after the deletion of pod b 1 pods are available, want at least 2"}, 1},
		"a new pod permits another deletion": {func(a *Availability) {
			a.Request("a")
			a.Request("b")
			remove(a, "a")
			a.Observe(podOf("d", true, false), false)
			remove(a, "b")
		}, nil, 2},
		"a pod that is not ready does not count": {func(a *Availability) {
			a.Request("a")
			a.Observe(podOf("c", false, false), false)
			remove(a, "a")
		}, []string{"after the deletion of pod a 1 pods are available, want at least 2"}, 1},
		"a pod that becomes unready is no deletion": {func(a *Availability) {
			a.Observe(podOf("b", false, false), false)
			a.Observe(podOf("c", false, false), false)
		}, nil, 3},
		"a pod that is not ready may be deleted": {func(a *Availability) {
			a.Observe(podOf("b", false, false), false)
			a.Observe(podOf("c", false, false), false)
			remove(a, "c")
		}, nil, 3},
		"a deletion without a request": {func(a *Availability) { remove(a, "a") },
			[]string{"pod a was deleted, but no request for it was admitted"}, 2},
		"a deletion that was denied": {func(a *Availability) {
			a.Request("a")
			a.Denied("a")
			remove(a, "a")
		}, []string{"pod a was deleted, but no request for it was admitted"}, 2},
		"one of two requests was denied": {func(a *Availability) {
			a.Request("a")
			a.Request("a")
			a.Denied("a")
			remove(a, "a")
		}, nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			a := NewAvailability()
			for _, pod := range []string{"a", "b", "c"} {
				a.Observe(podOf(pod, true, false), false)
			}
			a.Require(2)
			tc.do(a)
			if diff := cmp.Diff(tc.want, a.Violations()); diff != "" {
				t.Error("(-want +got)", diff)
			}
			if got := a.Lowest(); got != tc.lowest {
				t.Errorf("lowest is %d, want %d", got, tc.lowest)
			}
		})
	}
}
