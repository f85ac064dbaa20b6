// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/breakwater-dev/breakwater/test/shop/fault"
	"github.com/breakwater-dev/breakwater/test/shop/load"
)

// Release is one release that is recorded, in a namespace of its own.
type Release struct {
	Namespace string
	// Service is the service that is released.
	Service string
	// Variant says what makes a release without a fault hard to judge.
	Variant string
	// Fault and Strength are those of the new pods; None for a good release.
	Fault    fault.Kind
	Strength fault.Strength
	// Old pods run before, New pods are started, Keep old pods stay.
	Old, New, Keep int
	// Rate is the load in requests per second, Profile its course: constant,
	// ramp or wave.
	Rate    float64
	Profile string
	// Errors is the share of requests that fail in both versions.
	Errors float64
	// Delay is added to the time of the release.
	Delay time.Duration
	// DayBefore: the same runs without a release in another namespace at the same time. Its
	// samples are written 24 hours earlier, as the series of the day before.
	DayBefore bool
	// NoTraffic: the release gets no requests, so no verdict is the right one.
	NoTraffic bool
}

// Good reports whether the release has no fault.
func (r Release) Good() bool { return r.Fault == fault.None }

// Neighbour is the service that runs beside the released one: its caller or
// its dependency. At high loads there is none, to bound the CPU time.
func (r Release) Neighbour() string {
	if r.Rate >= 50 && !r.Fault.NeedsDependency() {
		return ""
	}
	return map[string]string{"front": "catalogue", "cart": "payment", "catalogue": "front", "payment": "cart"}[r.Service]
}

// Entry is the service that the load calls.
func (r Release) Entry() string {
	if n := r.Neighbour(); n == "front" || n == "cart" {
		return n
	}
	return r.Service
}

// Load is the rate over time; the release is made at the given time.
func (r Release) Load(at time.Duration) load.Profile {
	switch r.Profile {
	case "ramp":
		return load.Ramp(r.Rate, 3, at-time.Minute, at+2*time.Minute)
	case "wave":
		return load.Wave(r.Rate, 0.5, 4*time.Minute)
	}
	return load.Constant(r.Rate)
}

// faultyLoads are the loads of the faulty releases of a run by strength, goodLoads
// those of the good ones. A weak fault needs many requests to show at all: 2 % of 60
// requests is one. So releases with a weak fault have more load; those with a strong
// one go down to 0.2 requests per second.
var (
	faultyLoads = map[fault.Strength][]float64{
		fault.Weak:   {200, 50, 20, 20, 20, 20, 10, 10},
		fault.Medium: {20, 20, 10, 10, 5, 5, 5, 2},
		fault.Strong: {10, 5, 5, 5, 2, 1, 1, 0.2},
	}
	goodLoads = []float64{100, 50, 20, 20, 20, 20, 20, 10, 10, 10, 10, 10, 5, 5, 5, 5, 5, 2, 2, 2, 1, 1, 0.5, 0.2}
)

// variants are the good releases of a run.
var variants = []Release{
	{Variant: "plain", Old: 3, New: 1, Keep: 2},
	{Variant: "plain", Old: 3, New: 2, Keep: 1},
	{Variant: "plain", Old: 2, New: 2, Keep: 2},
	{Variant: "plain", Old: 2, New: 1, Keep: 1},
	{Variant: "plain", Old: 3, New: 3, Keep: 3},
	{Variant: "plain", Old: 2, New: 1, Keep: 2},
	{Variant: "load-ramp", Profile: "ramp", Old: 3, New: 2, Keep: 1},
	{Variant: "load-ramp", Profile: "ramp", Old: 2, New: 2, Keep: 0, DayBefore: true},
	{Variant: "daily-wave", Profile: "wave", Old: 3, New: 1, Keep: 2},
	{Variant: "daily-wave", Profile: "wave", Old: 2, New: 2, Keep: 0, DayBefore: true},
	{Variant: "slow-service", Old: 2, New: 2, Keep: 2},
	{Variant: "slow-service", Old: 3, New: 1, Keep: 2},
	{Variant: "noisy-node", Old: 3, New: 2, Keep: 3},
	{Variant: "faster", Old: 2, New: 2, Keep: 1},
	{Variant: "faster", Old: 3, New: 1, Keep: 2},
	{Variant: "one-pod", Old: 1, New: 1, Keep: 0, DayBefore: true},
	{Variant: "one-pod", Old: 1, New: 1, Keep: 1},
	{Variant: "last-batch", Old: 2, New: 2, Keep: 0, DayBefore: true},
	{Variant: "last-batch", Old: 3, New: 3, Keep: 0, DayBefore: true},
	{Variant: "restart-of-old", Old: 3, New: 1, Keep: 3},
	{Variant: "one-of-many", Old: 6, New: 1, Keep: 5},
	{Variant: "scale-up", Old: 2, New: 4, Keep: 1},
	{Variant: "errors-before-and-after", Old: 2, New: 2, Keep: 2, Errors: 0.01},
	{Variant: "errors-before-and-after", Old: 3, New: 1, Keep: 2, Errors: 0.03},
}

// shapes are the pod counts of the faulty releases.
var shapes = []Release{
	{Old: 3, New: 1, Keep: 2},
	{Old: 2, New: 2, Keep: 2},
	{Old: 3, New: 2, Keep: 1},
	{Old: 2, New: 1, Keep: 2},
	{Old: 1, New: 1, Keep: 1},
	{Old: 2, New: 2, Keep: 0, DayBefore: true},
}

// Plan returns the releases of a run: as many good as faulty ones, and two
// without traffic. The half is 0 or 1; each combination of kind and strength
// is in exactly one of both.
func Plan(run string, half int, seed uint64) []Release {
	random := rand.New(rand.NewPCG(seed, uint64(half)))
	plan := append(faulty(half, random), good(random)...)
	for range 2 {
		plan = append(plan, Release{Variant: "no-traffic", Service: "catalogue", Old: 2, New: 1, Keep: 1, NoTraffic: true})
	}
	random.Shuffle(len(plan), func(i, j int) { plan[i], plan[j] = plan[j], plan[i] })
	for i := range plan {
		plan[i].Namespace = fmt.Sprintf("shop-%s%02d", run, i+1)
		plan[i].Delay = time.Duration(random.IntN(20)) * time.Second
		plan[i].Profile = cmp.Or(plan[i].Profile, "constant")
	}
	return plan
}

func faulty(half int, random *rand.Rand) []Release {
	var list []Release
	for s, strength := range fault.Strengths {
		var kinds []fault.Kind
		for i, kind := range fault.Kinds {
			if (i+s)%2 == half {
				kinds = append(kinds, kind)
			}
		}
		random.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		// The first loads of a list are the highest. A neighbour is left out at high
		// loads, so the kinds that need one come last.
		slices.SortStableFunc(kinds, func(a, b fault.Kind) int { return rank(a) - rank(b) })
		for i, kind := range kinds {
			r := shapes[random.IntN(len(shapes))]
			r.Fault, r.Strength, r.Rate = kind, strength, faultyLoads[strength][i]
			r.Service = []string{"front", "cart"}[random.IntN(2)]
			if !kind.NeedsDependency() {
				r.Service = []string{"front", "cart", "catalogue", "payment"}[random.IntN(4)]
			}
			// A request that also waits for a dependency would be less than 30 % slower.
			if n := r.Neighbour(); kind == fault.Latency && strength == fault.Weak && (n == "catalogue" || n == "payment") {
				r.Service = n
			}
			list = append(list, r)
		}
	}
	return list
}

func rank(k fault.Kind) int {
	if k.NeedsDependency() {
		return 1
	}
	return 0
}

func good(random *rand.Rand) []Release {
	loads := slices.Clone(goodLoads)
	random.Shuffle(len(loads), func(i, j int) { loads[i], loads[j] = loads[j], loads[i] })
	list := slices.Clone(variants)
	for i := range list {
		list[i].Rate = loads[i]
		list[i].Service = []string{"front", "cart", "catalogue", "payment"}[random.IntN(4)]
	}
	// A variant is hard because of its requests. So the plain releases get the lowest
	// loads, as long as there are plain ones.
	low := 0
	for i, r := range list {
		for ; r.Variant != "plain" && r.Rate < 2 && low < len(list); low++ {
			if p := &list[low]; p.Variant == "plain" && p.Rate >= 2 {
				list[i].Rate, p.Rate = p.Rate, r.Rate
				break
			}
		}
	}
	return list
}
