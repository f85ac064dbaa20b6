package chaos

import (
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// FaultKind is a kind of fault.
type FaultKind string

// The kinds of faults.
const (
	// Kill ends the processes of a pod with SIGKILL.
	Kill FaultKind = "kill"
	// Pause stops the processes of a pod with SIGSTOP for a time.
	Pause FaultKind = "pause"
)

// Limits of the time for which a target is paused.
const (
	minPause = 3 * time.Second
	maxPause = 10 * time.Second
)

// Fault is one fault of a target.
type Fault struct {
	Round int
	// After is the time since the previous fault.
	After  time.Duration
	Target string
	Kind   FaultKind
	// All: all replicas have the fault. Otherwise only the replica with number
	// Replica, modulo the number of replicas, has it.
	All     bool
	Replica int
	// For is the duration of a pause.
	For time.Duration
}

func (f Fault) String() string {
	what := "one of"
	if f.All {
		what = "all of"
	}
	if f.Kind == Pause {
		return fmt.Sprintf("pause %s %s for %s", what, f.Target, f.For.Round(100*time.Millisecond))
	}
	return fmt.Sprintf("%s %s %s", f.Kind, what, f.Target)
}

// Schedule returns the faults of a run, without an end. It depends only on its
// arguments. The interval is the mean time between two faults; maxKills has the
// names of the targets and the maximum number of kills of each, 0 for no limit.
//
// In round 0 every target is killed once, and every third is paused too. In later
// rounds every target is either killed or paused once.
func Schedule(seed uint64, interval time.Duration, maxKills map[string]int) iter.Seq[Fault] {
	return func(yield func(Fault) bool) {
		r := rand.New(rand.NewPCG(seed, 0))
		names := slices.Sorted(maps.Keys(maxKills))
		kills := map[string]int{}
		for round := 0; len(names) > 0; round++ {
			var faults []Fault
			for i, n := range r.Perm(len(names)) {
				name := names[n]
				kill := round == 0 || (r.IntN(3) > 0 && (maxKills[name] == 0 || kills[name] < maxKills[name]))
				if kill {
					kills[name]++
					faults = append(faults, Fault{Target: name, Kind: Kill})
				}
				if !kill || (round == 0 && i%3 == 0) {
					faults = append(faults, Fault{Target: name, Kind: Pause, For: minPause + time.Duration(r.Int64N(int64(maxPause-minPause)))})
				}
			}
			r.Shuffle(len(faults), func(i, j int) { faults[i], faults[j] = faults[j], faults[i] })
			for _, f := range faults {
				f.Round, f.All, f.Replica = round, r.IntN(2) == 0, r.IntN(2)
				f.After = interval/2 + time.Duration(r.Int64N(int64(interval)))
				if !yield(f) {
					return
				}
			}
		}
	}
}

// Missing returns the faults of round 0 without an injection. injected has the number of injections by kind
// and target.
func Missing(seed uint64, interval time.Duration, maxKills map[string]int, injected map[FaultKind]map[string]int) []Fault {
	var out []Fault
	for f := range Schedule(seed, interval, maxKills) {
		if f.Round > 0 {
			break
		}
		if injected[f.Kind][f.Target] == 0 {
			out = append(out, f)
		}
	}
	return out
}
