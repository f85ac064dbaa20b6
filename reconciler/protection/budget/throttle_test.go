package budget

import (
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

func TestReconciliationsOfABudgetAreThrottled(t *testing.T) {
	c := testclock.NewFakePassiveClock(time.Unix(0, 0))
	p, key := newThrottle(c), types.NamespacedName{Namespace: "ns", Name: "web"}
	budget := func(charges int) *v1alpha1.PodUnavailableBudget {
		b := &v1alpha1.PodUnavailableBudget{Status: v1alpha1.PodUnavailableBudgetStatus{DeletedPods: map[types.UID]string{}}}
		for i := range charges {
			b.Status.DeletedPods[types.UID(strconv.Itoa(i))] = ""
		}
		return b
	}
	if p.wait(key, budget(busyCharges)) != 0 {
		t.Error("the first reconciliation waits")
	}
	p.record(key)
	for charges, want := range map[int]time.Duration{0: minInterval, busyCharges - 1: minInterval, busyCharges: busyInterval} {
		if got := p.wait(key, budget(charges)); got != want {
			t.Errorf("with %d charges: wait %s, want %s", charges, got, want)
		}
	}
	if p.wait(types.NamespacedName{Name: "other"}, budget(0)) != 0 {
		t.Error("another budget waits too")
	}
	c.SetTime(c.Now().Add(minInterval))
	if p.wait(key, budget(0)) != 0 {
		t.Error("still waits")
	}
}
