package chaos

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const interval = 4 * time.Second

var someTargets = map[string]int{"a": 2, "b": 0, "c": 1, "d": 2, "e": 2, "f": 0, "g": 2}

// first returns the faults of the first rounds.
func first(rounds int, seed uint64, maxKills map[string]int) []Fault {
	var out []Fault
	for f := range Schedule(seed, interval, maxKills) {
		if f.Round == rounds {
			break
		}
		out = append(out, f)
	}
	return out
}

func TestASeedRepeatsItsFaults(t *testing.T) {
	for seed := range uint64(50) {
		copied := map[string]int{}
		for name, most := range someTargets {
			copied[name] = most
		}
		if diff := cmp.Diff(first(5, seed, someTargets), first(5, seed, copied)); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
	if cmp.Equal(first(1, 1, someTargets), first(1, 2, someTargets)) {
		t.Error("two seeds have the same faults")
	}
}

func TestEveryTargetIsKilledInTheFirstRound(t *testing.T) {
	for seed := range uint64(50) {
		kills, pauses := map[string]int{}, 0
		for _, f := range first(1, seed, someTargets) {
			if f.Kind == Kill {
				kills[f.Target]++
			} else {
				pauses++
			}
		}
		want := map[string]int{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1}
		if diff := cmp.Diff(want, kills); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
		if pauses != 3 {
			t.Fatalf("seed %d: %d pauses, want 3", seed, pauses)
		}
	}
}

func TestFaultsKeepTheirLimits(t *testing.T) {
	for seed := range uint64(50) {
		kills, faults, all := map[string]int{}, map[[2]any]int{}, 0
		for _, f := range first(10, seed, someTargets) {
			if f.Kind == Kill {
				kills[f.Target]++
			} else if f.For < minPause || f.For > maxPause {
				t.Fatalf("seed %d: %s", seed, f)
			}
			if f.After < interval/2 || f.After > 3*interval/2 {
				t.Fatalf("seed %d: %s after %s", seed, f, f.After)
			}
			if f.All {
				all++
			}
			faults[[2]any{f.Round, f.Target}]++
		}
		for name, most := range someTargets {
			if most > 0 && kills[name] > most {
				t.Errorf("seed %d: %s is killed %d times, want at most %d", seed, name, kills[name], most)
			}
			for round := 1; round < 10; round++ {
				if n := faults[[2]any{round, name}]; n != 1 {
					t.Errorf("seed %d: %s has %d faults in round %d, want 1", seed, name, n, round)
				}
			}
		}
		if all < 20 || all > 53 {
			t.Errorf("seed %d: %d of 73 faults are of all replicas, want about half", seed, all)
		}
	}
}

func TestFaultsWithoutAnInjectionAreNamed(t *testing.T) {
	const seed = 1
	want := first(1, seed, someTargets)
	if diff := cmp.Diff(want, Missing(seed, interval, someTargets, nil)); diff != "" {
		t.Error(diff)
	}
	injected := map[FaultKind]map[string]int{Kill: {}, Pause: {}}
	for len(want) > 0 {
		injected[want[0].Kind][want[0].Target]++
		want = want[1:]
		if diff := cmp.Diff(want, Missing(seed, interval, someTargets, injected), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("injected %v: %s", injected, diff)
		}
	}
}
