package pod

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestLabelsOfAReleaseAreRateLimited(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1700000000, 0))
	p := newLabelLimiter(clock)
	allowed := func(rollingOut bool) (n int) {
		for range 4 * labelsPerSecond {
			if p.allows("large", rollingOut) {
				n++
			}
		}
		return n
	}
	for _, step := range []struct {
		what       string
		after      time.Duration
		rollingOut bool
		want       int
	}{
		{"at once", 0, true, labelBurst},
		{"in 3 s of the rollout", 3 * time.Second, true, 3 * labelsWhileRollingOut},
		{"when it is complete, at once", 0, false, 0},
		{"in a second after the rollout", time.Second, false, labelsPerSecond},
		{"after an hour", time.Hour, false, labelsPerSecond},
	} {
		clock.SetTime(clock.Now().Add(step.after))
		if got := allowed(step.rollingOut); got != step.want {
			t.Errorf("%s: %d are labeled, want %d", step.what, got, step.want)
		}
	}
	if !p.allows("small", true) {
		t.Error("a pod of another release is delayed")
	}
}
