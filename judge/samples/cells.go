package samples

import (
	"math"
	"sort"
)

// Grid divides time into cells. Cell 0 starts at Origin; cells before it have
// negative numbers.
type Grid struct{ Origin, Width float64 }

// Cell returns the cell of time t. A sample at the end of a cell belongs to this cell,
// because the sample of a counter counts the events before it.
func (g Grid) Cell(t float64) int { return int(math.Ceil((t-g.Origin)/g.Width)) - 1 }

// End returns the end of a cell.
func (g Grid) End(cell int) float64 { return g.Origin + float64(cell+1)*g.Width }

// Cells has a number per cell.
type Cells map[int]float64

// Sum adds up the cells from first to last.
func (c Cells) Sum(first, last int) float64 {
	total := 0.0
	for cell, v := range c {
		if cell >= first && cell <= last {
			total += v
		}
	}
	return total
}

// Span has the times of the first and the last sample of a pod, in Unix seconds.
type Span struct{ First, Last float64 }

// Spans returns the span of the samples of each pod.
func Spans(series []Series) map[string]Span {
	out := map[string]Span{}
	for _, s := range series {
		points := Numbers(s.Points)
		if len(points) == 0 {
			continue
		}
		pod := Pod(s.Labels)
		span, seen := out[pod]
		first, last := points[0].T, points[len(points)-1].T
		if !seen || first < span.First {
			span.First = first
		}
		if !seen || last > span.Last {
			span.Last = last
		}
		out[pod] = span
	}
	return out
}

// Increase adds the increase of a counter to cells. A decrease is a reset: the counter
// began at 0 again. If beganLate is true, the series began after its pod was first seen, and its
// first value counts: the first error of a pod creates its series. An increase over a gap
// is distributed over the cells of the gap.
func Increase(cells Cells, g Grid, points []Point, beganLate bool) {
	points = Numbers(points)
	if len(points) == 0 {
		return
	}
	if beganLate {
		cells[g.Cell(points[0].T)] += points[0].V
	}
	for i := 1; i < len(points); i++ {
		delta := points[i].V - points[i-1].V
		if delta < 0 {
			delta = points[i].V
		}
		if delta == 0 {
			continue
		}
		from, to := points[i-1].T, points[i].T
		if to-from <= 1.5*g.Width {
			cells[g.Cell(to)] += delta
			continue
		}
		n := int(math.Ceil((to - from) / g.Width))
		for k := range n {
			cells[g.Cell(to-float64(k)*g.Width)] += delta / float64(n)
		}
	}
}

// jitter is how many seconds a sample may be later than an interval after the one before.
const jitter = 1.0

// BeganLate reports whether a series began after its pod was first seen, and in the range that was read
// since a time. A series whose first sample is within an interval of the start of the range existed
// before: a pod may have several targets, which are scraped at different times.
func BeganLate(s Series, span Span, step, since float64) bool {
	if len(s.Points) == 0 {
		return false
	}
	first, interval := s.Points[0].T, math.Max(step, Step([]Series{s}))
	return first > span.First+math.Max(step, 1)*0.5 && first > since+interval+jitter
}

// Rates returns the increase per second of the counters per pod and complete cell. An
// increase is distributed evenly over the time between its two samples: otherwise the
// number of samples in a cell would decide its value.
func Rates(series []Series, g Grid) map[string]Cells {
	spans := Spans(series)
	out := map[string]Cells{}
	for _, s := range series {
		pod := Pod(s.Labels)
		if out[pod] == nil {
			out[pod] = Cells{}
			for c := g.Cell(spans[pod].First) + 1; g.End(c) <= spans[pod].Last; c++ {
				out[pod][c] = 0
			}
		}
		points := Numbers(s.Points)
		for i := 1; i < len(points); i++ {
			from, to, delta := points[i-1].T, points[i].T, points[i].V-points[i-1].V
			if delta < 0 {
				delta = points[i].V
			}
			for c := g.Cell(from); delta > 0 && g.End(c)-g.Width < to; c++ {
				within := math.Min(to, g.End(c)) - math.Max(from, g.End(c)-g.Width)
				if _, complete := out[pod][c]; complete && within > 0 {
					out[pod][c] += delta * within / (to - from) / g.Width
				}
			}
		}
	}
	return out
}

// Values returns the mean of a gauge per pod and cell. Several series of one pod
// (its containers) are added up.
func Values(series []Series, g Grid) map[string]Cells {
	out := map[string]Cells{}
	for _, s := range series {
		pod := Pod(s.Labels)
		if out[pod] == nil {
			out[pod] = Cells{}
		}
		sum, n := Cells{}, Cells{}
		for _, p := range Numbers(s.Points) {
			c := g.Cell(p.T)
			sum[c] += p.V
			n[c]++
		}
		for c := range sum {
			out[pod][c] += sum[c] / n[c]
		}
	}
	return out
}

// Sorted returns the keys of a map in order, so that results do not depend on
// the order of maps.
func Sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
