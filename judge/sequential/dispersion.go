package sequential

import (
	"math"
	"sort"
)

// Cell has the events of one pod, and their exposure.
type Cell struct{ Events, Exposure float64 }

// OverTime returns how much more events vary over time than independent ones: 1
// for a Poisson process. It pools two estimates: how the share of new pods in the
// events of an interval varies around ratio, in which what raises the events of
// new and old pods together has no part; and how the events of each pod varied, of
// old ones before the change. Size intervals are taken as one.
func OverTime(blocks []Block, ratio float64, history [][]Cell, size int) float64 {
	square, mean, used := split(blocks, math.Min(math.Max(ratio, 0.01), 1000), size)
	freedom := used - 1
	for _, cells := range history {
		var events, exposure, n float64
		merged := make([]Cell, (len(cells)+size-1)/size)
		for i, c := range cells {
			merged[i/size].Events += c.Events
			merged[i/size].Exposure += c.Exposure
			events += c.Events
			exposure += c.Exposure
		}
		if events == 0 || exposure <= 0 {
			continue
		}
		for _, c := range merged {
			if c.Exposure > 0 {
				expected := events * c.Exposure / exposure
				square += (c.Events - expected) * (c.Events - expected)
				n++
			}
		}
		mean += events
		used += n
		freedom += n - 1
	}
	return upper(square, mean, used, freedom)
}

// split returns the squares of the residuals of the new pods' shares, their
// variance if events are independent, and the number of intervals.
func split(blocks []Block, ratio float64, size int) (square, mean, used float64) {
	type sum struct{ residual, variance float64 }
	sums, last := map[int]sum{}, 0
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
		last = max(last, k)
	}
	for k := range last + 1 {
		if one, ok := sums[k]; ok {
			square += one.residual * one.residual
			mean += one.variance
			used++
		}
	}
	return square, mean, used
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
	if events < 2 || exposure <= 0 || len(pods) < 2 {
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

// priorFreedom degrees of freedom with a dispersion of priorDispersion are added
// to each estimate: few intervals look more regular than they are.
const priorFreedom, priorDispersion = 3, 2

// upper returns a cautious estimate of the variance per mean: the estimate is
// divided by a low quantile of what chance gives, if it is above 1 beyond chance.
// Squares are added up before they are divided: an interval with hardly any
// exposure would outweigh all others.
func upper(square, mean, used, freedom float64) float64 {
	phi := 1.0
	if freedom >= 1 && mean > 0 {
		phi = square / mean * used / freedom
	}
	freedom = math.Max(freedom, 0)
	phi = (phi*freedom + priorDispersion*priorFreedom) / (freedom + priorFreedom)
	freedom += priorFreedom
	if phi <= 1 {
		return 1
	}
	// Wilson-Hilferty: the 20 % quantile of chi-square/freedom.
	k := 2 / (9 * freedom)
	q := math.Pow(1-k-0.84*math.Sqrt(k), 3)
	// Above chance only: at one standard deviation the correction is complete.
	weight := math.Min(1, (phi-1)/math.Sqrt(2/freedom))
	return 1 + (phi-1)*(1+weight*(1/q-1))
}
