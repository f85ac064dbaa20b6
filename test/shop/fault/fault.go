// SPDX-License-Identifier: Apache-2.0

// Package fault lists the faults that a process of the shop can be started
// with. A fault has a kind and one of three strengths; its effects are a table,
// so that a recording says exactly what was wrong with a release.
package fault

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind names what is wrong.
type Kind string

// The kinds of fault.
const (
	None             Kind = ""
	Errors           Kind = "errors"            // answers 500
	NotFound         Kind = "not-found"         // answers 404 for what exists
	Resets           Kind = "resets"            // closes the connection in the middle of an answer
	Timeouts         Kind = "timeouts"          // does not answer before the caller's timeout
	WrongAnswers     Kind = "wrong-answers"     // answers 200 with a wrong value
	MissedCalls      Kind = "missed-calls"      // answers 200 without a call that belongs to it
	DependencyErrors Kind = "dependency-errors" // calls a dependency wrongly and hides its error
	ExtraCalls       Kind = "extra-calls"       // calls a dependency more often than needed
	Latency          Kind = "latency"           // needs longer for every request
	TailLatency      Kind = "tail-latency"      // needs 8 times as long for some requests
	SlowStart        Kind = "slow-start"        // needs longer during the first minutes
	CPU              Kind = "cpu"               // uses more CPU time
	MemoryLeak       Kind = "memory-leak"       // keeps memory until it is killed
	GoroutineLeak    Kind = "goroutine-leak"    // keeps goroutines
	CrashLoop        Kind = "crash-loop"        // exits some time after each start
	PartialTraffic   Kind = "partial-traffic"   // is often not Ready, or gets no requests at all
)

// Kinds are all kinds of fault.
var Kinds = []Kind{Errors, NotFound, Resets, Timeouts, WrongAnswers, MissedCalls, DependencyErrors, ExtraCalls, Latency,
	TailLatency, SlowStart, CPU, MemoryLeak, GoroutineLeak, CrashLoop, PartialTraffic}

// Strength says how strong a fault is.
type Strength string

// The strengths of a fault.
const (
	Weak   Strength = "weak"
	Medium Strength = "medium"
	Strong Strength = "strong"
)

// Strengths are all strengths, the weakest first.
var Strengths = []Strength{Weak, Medium, Strong}

// NeedsDependency reports whether only a service that calls another one can
// have this fault.
func (k Kind) NeedsDependency() bool {
	return k == MissedCalls || k == DependencyErrors || k == ExtraCalls
}

// Effects is what a process does because of its fault. A share is between 0
// and 1; it is a share of the requests, unless its comment says otherwise.
type Effects struct {
	Errors, NotFound, Resets, Hangs, Wrong, Missed, BadCalls float64

	// ExtraCalls is the number of additional calls for each needed one.
	ExtraCalls float64
	// Slowdown multiplies the time of service; 0 means 1.
	Slowdown float64
	// SlowShare of the requests need 8 times as long.
	SlowShare float64
	// WarmUp is how long after the start Slowdown lasts; 0 means always.
	WarmUp time.Duration
	// CPU is the additional CPU time as a share of what the process uses anyway.
	CPU float64
	// LeakBytes and LeakGoroutines are kept each second.
	LeakBytes, LeakGoroutines int
	// ExitAfter is the time from start to exit; 0 means never.
	ExitAfter time.Duration
	// Unready is the share of the time in which the process is not Ready.
	Unready float64
	// NoRequests says that requests do not reach the process, although it is Ready: the
	// program that runs it must leave it out of the endpoints.
	NoRequests bool
}

// share is the share of requests that a fault concerns, for each strength.
var share = map[Strength]float64{Weak: 0.02, Medium: 0.07, Strong: 0.30}

// more is the additional time, CPU or calls of a fault, as a multiple of the normal
// amount, for each strength.
var more = map[Strength]float64{Weak: 0.3, Medium: 1, Strong: 4}

// EffectsOf returns the effects of a kind and a strength. It fails if either is
// unknown.
func EffectsOf(k Kind, s Strength) (Effects, error) {
	if k == None {
		return Effects{}, nil
	}
	if !slices.Contains(Kinds, k) {
		return Effects{}, fmt.Errorf("fault %q is unknown, use one of %s", k, join(Kinds))
	}
	if !slices.Contains(Strengths, s) {
		return Effects{}, fmt.Errorf("strength %q is unknown, use one of %s", s, join(Strengths))
	}
	pick := func(weak, medium, strong int) int {
		return map[Strength]int{Weak: weak, Medium: medium, Strong: strong}[s]
	}
	seconds := func(weak, medium, strong int) time.Duration {
		return time.Duration(pick(weak, medium, strong)) * time.Second
	}
	switch k {
	case Errors:
		return Effects{Errors: share[s]}, nil
	case NotFound:
		return Effects{NotFound: share[s]}, nil
	case Resets:
		return Effects{Resets: share[s]}, nil
	case Timeouts:
		return Effects{Hangs: share[s]}, nil
	case WrongAnswers:
		return Effects{Wrong: share[s]}, nil
	case MissedCalls:
		return Effects{Missed: share[s]}, nil
	case DependencyErrors:
		return Effects{BadCalls: share[s]}, nil
	case ExtraCalls:
		return Effects{ExtraCalls: more[s]}, nil
	case Latency:
		return Effects{Slowdown: 1 + more[s]}, nil
	case TailLatency:
		return Effects{SlowShare: share[s]}, nil
	case SlowStart:
		return Effects{Slowdown: 1 + 2*more[s], WarmUp: seconds(90, 150, 240)}, nil
	case CPU:
		return Effects{CPU: more[s]}, nil
	case MemoryLeak:
		return Effects{LeakBytes: pick(30, 100, 600) << 10}, nil
	case GoroutineLeak:
		return Effects{LeakGoroutines: pick(1, 5, 25)}, nil
	case CrashLoop:
		return Effects{ExitAfter: seconds(120, 40, 8)}, nil
	case PartialTraffic:
		return Effects{Unready: float64(pick(30, 70, 0)) / 100, NoRequests: s == Strong}, nil
	}
	return Effects{}, fmt.Errorf("fault %q has no effects", k)
}

func join[T ~string](list []T) string {
	names := make([]string, len(list))
	for i, n := range list {
		names[i] = string(n)
	}
	return strings.Join(names, ", ")
}
