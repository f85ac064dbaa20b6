package callqueue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/internal/resend"
)

// fixture is a queue that records the calls that are admitted after they waited.
type fixture struct {
	*Queue
	clock    *clocktesting.FakePassiveClock
	admitted []string
}

// newFixture returns a queue with room for n calls.
func newFixture(n int) *fixture {
	f := &fixture{clock: clocktesting.NewFakePassiveClock(time.Unix(1_700_000_000, 0))}
	f.Queue = New(f.clock)
	f.SetQPS(float32(n))
	return f
}

// call is a call of release a for the id a1.
func (f *fixture) call(id string, attempt int64) Call {
	return Call{ID: id, Attempt: attempt, Release: id[:1], Admitted: func() { f.admitted = append(f.admitted, id) }}
}

// begin begins first attempts, and returns those that may be made now.
func (f *fixture) begin(ids ...string) string {
	var now []string
	for _, id := range ids {
		if f.Begin(f.call(id, 1)) {
			now = append(now, id)
		}
	}
	return strings.Join(now, " ")
}

// check checks which calls were admitted since the last check.
func (f *fixture) check(t *testing.T, want string) {
	t.Helper()
	if got := strings.Join(f.admitted, " "); got != want {
		t.Errorf("admitted %q, want %q", got, want)
	}
	f.admitted = nil
}

func TestReleasesHaveTheirTurnsOneAfterTheOther(t *testing.T) {
	f := newFixture(2)
	if got := f.begin("a1", "a2", "a3", "a4", "a5", "b1", "c1", "c2"); got != "a1 a2" {
		t.Errorf("%q may be made at once, want a1 and a2", got)
	}
	f.check(t, "")
	for _, step := range []struct{ ended, admitted string }{
		{"a1", "a3"}, {"a2", "b1"}, {"a3", "c1"}, {"b1", "a4"}, {"c1", "c2"}, {"a4", "a5"}, {"c2", ""}, {"a5", ""},
	} {
		f.End(step.ended)
		f.check(t, step.admitted)
		if step.admitted != "" && !f.Begin(f.call(step.admitted, 1)) {
			t.Errorf("%s was admitted and may not be made", step.admitted)
		}
	}
	if waiting, inFlight := f.Lengths(); waiting != 0 || inFlight != 0 {
		t.Errorf("%d calls wait and %d are in flight", waiting, inFlight)
	}
}

func TestCallsThatLeadToAVerdictComeBeforeStarts(t *testing.T) {
	f := newFixture(2)
	f.begin("a1", "a2", "a3", "a4")
	for _, id := range []string{"a5", "a6"} {
		c := f.call(id, 1)
		c.Priority = true
		f.Begin(c)
	}
	for _, step := range []struct{ ended, admitted string }{{"a1", "a5"}, {"a2", "a6"}, {"a5", "a3"}, {"a6", "a4"}} {
		f.End(step.ended)
		f.check(t, step.admitted)
	}
}

func TestACallInFlightMayBeRepeatedUntilItsTimeIsOver(t *testing.T) {
	f := newFixture(2)
	f.begin("a1", "a2", "b1")
	f.clock.SetTime(f.clock.Now().Add(FlightTime - time.Second))
	if got := f.begin("a1"); got != "a1" {
		t.Error("a wake-up cannot be repeated")
	}
	f.clock.SetTime(f.clock.Now().Add(time.Second))
	// The calls of a are in flight no more: b1 is admitted, and a1 waits behind it.
	if got := f.begin("a1"); got != "a1" {
		t.Errorf("%q may be made, want a1, for which there is room", got)
	}
	f.check(t, "b1")
	if got := f.begin("a2"); got != "" {
		t.Errorf("%q may be made, but 2 calls are in flight", got)
	}
}

func TestAnotherAttemptWaitsAgain(t *testing.T) {
	f := newFixture(2)
	f.begin("a1", "a2", "b1", "b2")
	f.EndEarlier(f.call("a1", 1)) // is still in flight
	f.check(t, "")
	f.EndEarlier(f.call("a1", 2))
	f.check(t, "b1")
	if f.Begin(f.call("a2", 2)) {
		t.Error("the second attempt of a2 may be made before b2")
	}
	f.check(t, "b2")
}

func TestACallThatIsNotBegunLosesItsTurn(t *testing.T) {
	f := newFixture(2)
	f.begin("a1", "a2", "b1", "c1")
	f.End("a1")
	f.check(t, "b1") // its object is deleted
	f.clock.SetTime(f.clock.Now().Add(admissionTime))
	f.EndEarlier(f.call("a2", 1))
	f.check(t, "c1")
}

func TestACallThatWaitsCanEnd(t *testing.T) {
	f := newFixture(2)
	f.begin("a1", "a2", "b1", "c1")
	f.End("b1")
	f.End("b1")
	f.End("a1")
	f.check(t, "c1")
}

func TestTheRateBoundsTheCallsInFlight(t *testing.T) {
	for _, tc := range []struct {
		qps  float32
		want int
	}{{0.5, 2}, {1, 2}, {20, 20}, {100, 50}} {
		f := newFixture(100)
		f.SetQPS(tc.qps)
		var ids []string
		for i := range 60 {
			ids = append(ids, fmt.Sprintf("a%d", i))
		}
		f.begin(ids...)
		if waiting, inFlight := f.Lengths(); inFlight != tc.want || waiting != 60-tc.want {
			t.Errorf("%v per second: %d calls in flight and %d waiting, want %d in flight", tc.qps, inFlight, waiting, tc.want)
		}
		f.SetQPS(100)
		if _, inFlight := f.Lengths(); inFlight != 50 {
			t.Errorf("%v per second: %d calls in flight after a change of the rate, want 50", tc.qps, inFlight)
		}
		if f.begin("a1") != "a1" {
			t.Error("a call in flight was dropped")
		}
	}
}

func TestQuestionsAboutVerdictsAreAQuarterOfTheRate(t *testing.T) {
	f := newFixture(100)
	f.SetQPS(20)
	asked := func() (n int) {
		for range 100 {
			if f.TakeQuestion() {
				n++
			}
		}
		return n
	}
	if n := asked(); n != 5 {
		t.Errorf("%d questions at once, want 5 of 20 calls per second", n)
	}
	f.clock.SetTime(f.clock.Now().Add(600 * time.Millisecond))
	if n := asked(); n != 3 {
		t.Errorf("%d questions in 600 ms, want 3", n)
	}
	f.SetQPS(0.5)
	f.clock.SetTime(f.clock.Now().Add(time.Minute))
	if n := asked(); n != 1 {
		t.Errorf("%d questions at once, want 1: a low rate must not forbid them", n)
	}
}

func TestTimeInTheQueueDoesNotCount(t *testing.T) {
	const timeout = time.Minute
	f := newFixture(2)
	wakeUps, began := resend.New(f.clock), f.clock.Now()
	check := func(after time.Duration, id string, due bool, want time.Time) {
		t.Helper()
		f.clock.SetTime(began.Add(after))
		if now, _ := f.TakeDue(wakeUps, f.call(id, 1), resend.ForCall, true); now != due {
			t.Errorf("%s after %s: due %v, want %v", id, after, now, due)
		}
		if got := WokenSince(wakeUps, id, timeout, time.Time{}); !got.Equal(want) {
			t.Errorf("%s after %s: counts from %s, want %s", id, after, got, want)
		}
	}
	check(0, "a1", true, began)
	check(0, "a2", true, began)
	check(0, "b1", false, time.Time{})
	check(FlightTime, "b1", true, began.Add(FlightTime))
	check(FlightTime, "a1", true, began)                     // another turn at once
	check(FlightTime, "a2", false, time.Time{})              // waits for another turn
	f.End("b1")                                              // was made
	check(3*FlightTime, "a2", true, began.Add(2*FlightTime)) // ends after a turn, although a minute has passed
}

func TestAfterATimeInWhichNoProcessDecidedTheTimeoutBeginsAgain(t *testing.T) {
	f := newFixture(1)
	wakeUps, began := resend.New(f.clock), f.clock.Now()
	since := began.Add(time.Hour)
	if got := WokenSince(wakeUps, "a1", time.Minute, since); !got.IsZero() {
		t.Errorf("counts from %s before the first wake-up", got)
	}
	f.TakeDue(wakeUps, f.call("a1", 1), resend.ForCall, true)
	if got := WokenSince(wakeUps, "a1", time.Minute, since); !got.Equal(since) {
		t.Errorf("counts from %s, want %s", got, since)
	}
}
