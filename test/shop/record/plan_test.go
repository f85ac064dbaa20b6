// SPDX-License-Identifier: Apache-2.0

package record

import (
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/test/shop/fault"
	"github.com/breakwater-dev/breakwater/test/shop/load"
	"github.com/breakwater-dev/breakwater/test/shop/service"
)

type combination struct {
	kind     fault.Kind
	strength fault.Strength
}

func TestBothHalvesTogetherHaveEveryFaultInEveryStrengthOnce(t *testing.T) {
	seen := map[combination]int{}
	for half := range 2 {
		for _, r := range Plan("a", half, uint64(half)) {
			seen[combination{r.Fault, r.Strength}]++
		}
	}
	for _, k := range fault.Kinds {
		for _, s := range fault.Strengths {
			if n := seen[combination{k, s}]; n != 1 {
				t.Errorf("%s, %s is in the plans %d times", k, s, n)
			}
		}
	}
}

func TestHalfOfThePlanIsBad(t *testing.T) {
	for half := range 2 {
		count := map[string]int{}
		for _, r := range Plan("a", half, 1) {
			if !r.NoTraffic {
				count[result{release: r}.label()]++
			}
		}
		if count["good"] != 24 || count["bad"] != 24 {
			t.Errorf("half %d: %v", half, count)
		}
	}
}

func TestEveryLoadIsWithinTheBoundsAndAllTogetherAreBounded(t *testing.T) {
	for seed := range uint64(20) {
		total := 0.0
		for _, r := range Plan("a", int(seed%2), seed) {
			total += r.Rate
			if !r.NoTraffic && (r.Rate < load.MinStartRate || r.Rate > load.MaxRate) {
				t.Errorf("%s: %v", r.Namespace, r.Rate)
			}
		}
		if total > 1000 {
			t.Errorf("seed %d: %v requests per second", seed, total)
		}
	}
}

func TestAFaultOfCallsIsInAServiceThatCalls(t *testing.T) {
	for seed := range uint64(20) {
		for _, r := range Plan("a", int(seed%2), seed) {
			if r.Fault.NeedsDependency() && r.Neighbour() != "catalogue" && r.Neighbour() != "payment" {
				t.Errorf("seed %d: %+v", seed, r)
			}
		}
	}
}

func TestAWeakFaultOfLatencyIsInAServiceThatCallsNoOther(t *testing.T) {
	for seed := range uint64(20) {
		for _, r := range Plan("a", 0, seed) {
			if r.Fault == fault.Latency && r.Strength == fault.Weak && (r.Neighbour() == "catalogue" || r.Neighbour() == "payment") {
				t.Errorf("seed %d: %+v", seed, r)
			}
		}
	}
}

func TestOnlyAGoodReleaseWithoutOldPodsIsDisturbedByAGrowingLag(t *testing.T) {
	for tc, c := range map[string]struct {
		fault fault.Kind
		keep  int
		after time.Duration
		want  bool
	}{
		"no old pods, same lag":          {"", 0, 3 * time.Millisecond, false},
		"no old pods, lag grows":         {"", 0, 5 * time.Millisecond, true},
		"no old pods, lag shrinks":       {"", 0, time.Millisecond, false},
		"no old pods, lag grows, faulty": {fault.Errors, 0, 5 * time.Millisecond, false},
		"old pods, lag grows":            {"", 1, 5 * time.Millisecond, false},
	} {
		r := result{release: Release{Fault: c.fault, Keep: c.keep}, lagBefore: 3 * time.Millisecond, lagAfter: c.after}
		if got := r.disturbed(); got != c.want {
			t.Errorf("%s: got %v", tc, got)
		}
	}
}

func TestEveryReleaseIsOfAService(t *testing.T) {
	for half := range 2 {
		for _, r := range Plan("a", half, 1) {
			if _, err := service.SpecOf(r.Service); err != nil || r.New == 0 || r.Old < r.Keep {
				t.Errorf("%+v: %v", r, err)
			}
		}
	}
}
