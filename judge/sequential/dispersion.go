package sequential

import (
	"math"
	"sort"
)

// Cell has the events of one pod, and their exposure.
type Cell struct{ Events, Exposure float64 }

// OverTime returns how much more the share of new pods in the events of an
// interval varies around ratio than with independent events: 1 for a Poisson
// process. What raises the events of new and old pods together has no part in it.
// Size intervals are taken as one.
func OverTime(blocks []Block, ratio float64, size int) float64 {
	ratio = math.Min(math.Max(ratio, 0.01), 1000)
	type sum struct{ residual, variance float64 }
	sums := map[int]sum{}
	for _, b := range blocks {
		if b.NewExposure <= 0 || b.OldExposure <= 0 {
			continue
		}
		share := ratio * b.NewExposure / (ratio*b.NewExposure + b.OldExposure)
		events := b.New + b.Old
		k := b.Cell / size
		one := sums[k]
		one.residual += b.New - events*share
		one.variance += events * share * (1 - share)
		sums[k] = one
	}
	square, mean, used := 0.0, 0.0, 0.0
	for k := range len(blocks) {
		one, ok := sums[k]
		if !ok {
			continue
		}
		square += one.residual * one.residual
		mean += one.variance
		used++
	}
	return upper(square, mean, used, used-1)
}

// Shocks returns the intervals with far more events than the others, of new and
// old pods together. They tell of the surroundings, not of the release. The
// choice depends on the sum only, which the test takes as given.
func Shocks(blocks []Block) map[int]bool {
	sums := map[int]float64{}
	for _, b := range blocks {
		if b.NewExposure > 0 && b.OldExposure > 0 {
			sums[b.Cell] += b.New + b.Old
		}
	}
	var events []float64
	for _, v := range sums {
		if v > 0 {
			events = append(events, v)
		}
	}
	out := map[int]bool{}
	if len(events) < 5 {
		return out
	}
	sort.Float64s(events)
	limit := 10 + 5*events[len(events)/2]
	for cell, v := range sums {
		if v > limit {
			out[cell] = true
		}
	}
	return out
}

// BetweenPods returns how much more the totals of pods of one version vary than
// independent events do.
func BetweenPods(pods []Cell) float64 {
	events, exposure := 0.0, 0.0
	for _, c := range pods {
		events += c.Events
		exposure += c.Exposure
	}
	if events < 2 || exposure <= 0 {
		return 1
	}
	square, used := 0.0, 0.0
	for _, c := range pods {
		if c.Exposure <= 0 {
			continue
		}
		expected := events * c.Exposure / exposure
		square += (c.Events - expected) * (c.Events - expected)
		used++
	}
	return upper(square, events, used, used-1)
}

// upper returns a cautious estimate of the variance per mean: the estimate is
// divided by a low quantile of what chance gives, if it is above 1 beyond chance.
// Squares are added up before they are divided: a cell with hardly any exposure
// would outweigh all others.
func upper(square, mean, used, freedom float64) float64 {
	if freedom < 1 || mean <= 0 {
		return 1
	}
	phi := square / mean * used / freedom
	if phi <= 1 {
		return 1
	}
	// Wilson-Hilferty: the 20 % quantile of chi-square/freedom.
	k := 2 / (9 * freedom)
	q := math.Pow(math.Max(1-k-0.84*math.Sqrt(k), 0.2), 3)
	// Above chance only: at one standard deviation the correction is complete.
	weight := math.Min(1, (phi-1)/math.Sqrt(2/freedom))
	return 1 + (phi-1)*(1+weight*(1/q-1))
}
