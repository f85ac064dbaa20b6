package wakeup

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testclock "k8s.io/utils/clock/testing"
)

func TestAnEventIsSentAgainWithGrowingDistance(t *testing.T) {
	c := testclock.NewFakePassiveClock(time.Unix(0, 0))
	s := New(c)
	var got []time.Duration
	for range 7 {
		now, next := s.Due("a")
		if !now {
			t.Fatal("not due")
		}
		if again, _ := s.Due("a"); again {
			t.Fatal("due twice at one time")
		}
		got = append(got, next)
		c.SetTime(c.Now().Add(next))
	}
	want := []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second,
		30 * time.Second, 30 * time.Second, 30 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnEventWhoseEffectIsThereStartsAnew(t *testing.T) {
	s := New(testclock.NewFakePassiveClock(time.Unix(0, 0)))
	s.Due("a")
	s.Done("a")
	if now, next := s.Due("a"); !now || next != first {
		t.Errorf("due %v in %s", now, next)
	}
}
