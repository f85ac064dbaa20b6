package resend

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testclock "k8s.io/utils/clock/testing"
)

func TestAWakeUpIsRepeatedWithExponentialBackoff(t *testing.T) {
	c := testclock.NewFakePassiveClock(time.Unix(0, 0))
	s := New(c)
	var got []time.Duration
	for range 7 {
		now, next := s.TakeDue("a")
		if !now {
			t.Fatal("not due")
		}
		if again, _ := s.TakeDue("a"); again {
			t.Fatal("due twice at the same time")
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

func TestDoneResetsTheBackoff(t *testing.T) {
	s := New(testclock.NewFakePassiveClock(time.Unix(0, 0)))
	s.TakeDue("a")
	s.Done("a")
	if now, next := s.TakeDue("a"); !now || next != minInterval {
		t.Errorf("due %v, next in %s", now, next)
	}
}

func TestSinceIsTheTimeOfTheFirstWakeUp(t *testing.T) {
	c := testclock.NewFakePassiveClock(time.Unix(10, 0))
	s := New(c)
	since := func() time.Time { first, _ := s.Since("a"); return first }
	if s.UntilDue("a") != 0 || !since().IsZero() {
		t.Error("a wake-up that was not sent is not due")
	}
	s.TakeDue("a")
	if wait := s.UntilDue("a"); wait != minInterval {
		t.Errorf("due in %s", wait)
	}
	c.SetTime(c.Now().Add(minInterval))
	s.TakeDue("a")
	if got := since(); !got.Equal(time.Unix(10, 0)) {
		t.Errorf("sent since %s", got)
	}
	s.Done("a")
	if !since().IsZero() {
		t.Error("the time of an earlier wake-up remains")
	}
}

func TestAWakeUpThatIsPausedHasNoTimeUntilItIsSentAgain(t *testing.T) {
	c := testclock.NewFakePassiveClock(time.Unix(10, 0))
	s := New(c)
	s.Pause("a") // was not sent
	s.TakeDue("a")
	if first, resumed := s.Since("a"); first.IsZero() || !resumed.IsZero() {
		t.Errorf("sent at %s, resumed at %s", first, resumed)
	}
	s.Pause("a")
	if first, resumed := s.Since("a"); !first.IsZero() || !resumed.IsZero() {
		t.Errorf("sent at %s, resumed at %s while it is paused", first, resumed)
	}
	c.SetTime(time.Unix(100, 0))
	s.TakeDue("a")
	if first, resumed := s.Since("a"); !first.Equal(time.Unix(10, 0)) || !resumed.Equal(time.Unix(100, 0)) {
		t.Errorf("sent at %s, resumed at %s", first, resumed)
	}
}
