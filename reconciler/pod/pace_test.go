package pod

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

func TestThePaceOfLabels(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(1700000000, 0))
	p := newPace(clock)
	for i := range labelsAtOnce {
		if got := p.next("large"); got != 0 {
			t.Fatalf("pod %d waits %s, want none", i, got)
		}
	}
	for i, want := range []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 600 * time.Millisecond} {
		if got := p.next("large"); got != want {
			t.Errorf("pod %d waits %s, want %s", labelsAtOnce+i, got, want)
		}
	}
	if got := p.next("small"); got != 0 {
		t.Errorf("a pod of another release waits %s, want none", got)
	}
	clock.SetTime(clock.Now().Add(time.Second))
	if got := p.next("large"); got != 0 {
		t.Errorf("a pod that comes later waits %s, want none", got)
	}
}
