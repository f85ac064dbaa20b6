package budget

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
)

func TestReconciliationsOfABudgetAreThrottled(t *testing.T) {
	c := testclock.NewFakePassiveClock(time.Unix(0, 0))
	p, key := newThrottle(c), types.NamespacedName{Namespace: "ns", Name: "web"}
	if p.wait(key, busyCharges) != 0 {
		t.Error("the first reconciliation waits")
	}
	p.record(key)
	for charges, want := range map[int]time.Duration{0: minInterval, busyCharges - 1: minInterval, busyCharges: busyInterval} {
		if got := p.wait(key, charges); got != want {
			t.Errorf("with %d charges: wait %s, want %s", charges, got, want)
		}
	}
	if p.wait(types.NamespacedName{Name: "other"}, 0) != 0 {
		t.Error("another budget waits too")
	}
	c.SetTime(c.Now().Add(minInterval))
	if p.wait(key, 0) != 0 {
		t.Error("still waits")
	}
}
