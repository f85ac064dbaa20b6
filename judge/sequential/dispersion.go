package sequential

import (
	"maps"
	"math"
	"sort"
)

// Count has the events of one pod, and their exposure.
type Count struct{ Events, Exposure float64 }

// OverTime returns the dispersion of events over time: their variance relative to that of
// independent events, 1 for a Poisson process. It pools two estimates. The first is the
// variance of the share of the new pods in the events of an interval, around ratio; a joint
// disturbance of new and old pods does not change this share. The second is the variance of
// the events of each pod, given as history. Intervals are merged: size is how many
// become one.
func OverTime(blocks []Block, ratio float64, history [][]Count, size int) float64 {
	square, mean, used := split(blocks, math.Min(math.Max(ratio, 0.01), 1000), size)
	freedom := used - 1
	for _, cells := range history {
		var events, exposure, n float64
		merged := make([]Count, (len(cells)+size-1)/size)
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

// JointDisturbances returns the intervals in which new and old pods together have far more events
// than in the others. Their cause is outside of the release, if the old pods take part in them: if the
// rate of the new pods is at most disturbanceFactor times theirs. Intervals with a disturbance of the new
// pods alone are among them only if they are exceptional. If there are more, they are a fault that does
// not exist all the time, and returned as onlyNew. Given the sum, which is fixed in the test, independent
// events are rarely divided like this. Events of both sides are compared only with intervals that have
// some: events in bursts are no disturbance if there are many bursts. A fault that begins late may have no
// events before, so events of the new pods are compared with all intervals if they last. A disturbance of the
// new pods alone is at most longest whole intervals long: the sum of its shares of events.
func JointDisturbances(blocks []Block, longest float64) (joint, onlyNew map[int]bool) {
	cells := map[int]Block{}
	for _, b := range blocks {
		if b.NewExposure > 0 && b.OldExposure > 0 {
			sum := cells[b.Cell]
			cells[b.Cell] = Block{New: sum.New + b.New, NewExposure: sum.NewExposure + b.NewExposure, Old: sum.Old + b.Old, OldExposure: sum.OldExposure + b.OldExposure}
		}
	}
	var all, withEvents []float64
	for _, c := range cells {
		all = append(all, c.New+c.Old)
		if c.New+c.Old > 0 {
			withEvents = append(withEvents, c.New+c.Old)
		}
	}
	limit, limitOfNew := disturbanceLimit(withEvents), disturbanceLimit(all)
	above := func(limit float64, ofNewOnly bool) map[int]bool {
		out := map[int]bool{}
		for cell, c := range cells {
			if c.New+c.Old > limit && (c.New/c.NewExposure > disturbanceFactor*c.Old/c.OldExposure) == ofNewOnly {
				out[cell] = true
			}
		}
		return out
	}
	joint, onlyNew = above(limit, false), above(limitOfNew, true)
	if !lasts(onlyNew, cells) {
		onlyNew = above(limit, true)
	}
	length := 0.0
	for cell := range onlyNew {
		c := cells[cell]
		length += math.Min(1, c.New/c.NewExposure-c.Old/c.OldExposure)
	}
	if len(onlyNew) <= exceptional(len(cells)) && length <= longest {
		maps.Copy(joint, onlyNew)
		clear(onlyNew)
	}
	return joint, onlyNew
}

// lasts reports whether at least half of the cells from the first of these on are among them.
func lasts(these map[int]bool, cells map[int]Block) bool {
	first := math.MaxInt
	for cell := range these {
		first = min(first, cell)
	}
	since := 0
	for cell := range cells {
		if cell >= first {
			since++
		}
	}
	return 2*len(these) >= since
}

// disturbanceLimit returns up to how many events of both sides an interval has no disturbance, given the events of
// the intervals that it is compared with.
func disturbanceLimit(events []float64) float64 {
	if len(events) < 5 {
		return math.Inf(1)
	}
	sort.Float64s(events)
	return 10 + disturbanceFactor*events[len(events)/2]
}

// disturbanceFactor is how many times as many events as usual a disturbance has at least.
const disturbanceFactor = 5

// exceptional returns how many of the intervals may be an exception: two, or a tenth of all.
func exceptional(all int) int { return max(2, all/10) }

// Disturbances returns the cells that have far more events than the other cells of the same pods:
// each is a disturbance of seconds. If there are more such cells than exceptional, or more than longest whole cells
// by their shares of events, none is returned.
func Disturbances(cells []Count, longest float64) map[int]bool {
	var shares []float64
	exposure := 0.0
	for _, c := range cells {
		if c.Exposure > 0 {
			shares = append(shares, c.Events/c.Exposure)
			exposure += c.Exposure
		}
	}
	out := map[int]bool{}
	if len(shares) < 5 {
		return out
	}
	sort.Float64s(shares)
	median, length := shares[len(shares)/2], 0.0
	for i, c := range cells {
		if c.Events > DisturbanceEvents+disturbanceFactor*median*c.Exposure {
			out[i] = true
			length += math.Min(1, c.Events/c.Exposure-median)
		}
	}
	if len(out) > exceptional(len(shares)) || length > longest {
		return map[int]bool{}
	}
	return out
}

// DisturbanceEvents is the number of events in an interval up to which they are no disturbance.
// So few events prove nothing.
const DisturbanceEvents = 5

// BetweenPods returns the dispersion between the totals of pods of one version: their
// variance relative to that of independent events.
func BetweenPods(pods []Count) float64 {
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
// to each estimate: the sample variance of few intervals is often too low.
const priorFreedom, priorDispersion = 3, 2

// upper returns a conservative estimate of the variance divided by the mean. If the estimate
// is significantly above 1, it is divided by a low quantile of its distribution. Squares are
// summed before the division: otherwise an interval with very little exposure would
// dominate.
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
	// The correction grows with the excess above 1, and is complete at one standard deviation.
	weight := math.Min(1, (phi-1)/math.Sqrt(2/freedom))
	return 1 + (phi-1)*(1+weight*(1/q-1))
}
