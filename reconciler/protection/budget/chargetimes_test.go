package budget

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

func TestAChargeExpiresAfterItsTimeout(t *testing.T) {
	c := testclock.NewFakePassiveClock(time.Unix(0, 0))
	known := newChargeTimes(c, time.Minute-budget.RepeatedTTL)
	b := &v1alpha1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	b.Status.DeletedPods = map[types.UID]string{"a": "5"}
	key := budget.DeletedKey("a", "5")
	if expired, next := known.observe(b); expired(key) || next != time.Minute {
		t.Errorf("at once: expired %v, next %s", expired(key), next)
	}
	c.SetTime(time.Unix(40, 0))
	b.Status.UnavailablePods = map[string]string{"b": "7/uid-b"}
	if expired, next := known.observe(b); expired(key) || next != 20*time.Second {
		t.Errorf("after 40 s: expired %v, next %s", expired(key), next)
	}
	c.SetTime(time.Unix(60, 0))
	changed := budget.ChangedKey("b", budget.Entry{ResourceVersion: "7", UID: "uid-b"})
	if expired, next := known.observe(b); !expired(key) || expired(changed) || next != 40*time.Second {
		t.Errorf("after 60 s: expired %v and %v, next %s", expired(key), expired(changed), next)
	}
	// A charge after a refund is a new charge.
	b.Status.DeletedPods = nil
	known.observe(b)
	b.Status.DeletedPods = map[types.UID]string{"a": "5"}
	if expired, _ := known.observe(b); expired(key) {
		t.Error("a new charge has the age of the previous one")
	}
}
