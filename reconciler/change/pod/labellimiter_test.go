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
			if p.take("large", rollingOut) == 0 {
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
	if p.take("small", true) > 0 {
		t.Error("a pod of another release is delayed")
	}
}

// Pods above the limit are tried again together, so not more than the burst is labeled at a time.
func TestALargeReleaseIsLabeledWithinSecondsAfterItsRollout(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1700000000, 0))
	p := newLabelLimiter(clock)
	const pods = 1000
	var due [pods]time.Time // when a pod is tried again; zero if it is labeled
	for i := range due {
		due[i] = clock.Now().Add(p.take("large", true))
	}
	began := clock.Now()
	for left := pods; left > 0; clock.SetTime(clock.Now().Add(100 * time.Millisecond)) {
		left = 0
		for i := range due {
			switch {
			case due[i].IsZero():
				continue
			case due[i].After(clock.Now()):
			default:
				if delay := p.take("large", false); delay > 0 {
					due[i] = clock.Now().Add(delay)
				} else {
					due[i] = time.Time{}
					continue
				}
			}
			left++
		}
		if took := clock.Now().Sub(began); left > 0 && took > retryWhileRollingOut+pods/labelsPerSecond*time.Second {
			t.Fatalf("%d of %d pods have no label %s after the rollout", left, pods, took)
		}
	}
}
