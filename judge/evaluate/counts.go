package evaluate

import (
	"maps"
	"math"
	"sort"

	"github.com/breakwater-dev/breakwater/judge/samples"
	"github.com/breakwater-dev/breakwater/judge/sequential"
)

// maxStrata is the maximum number of kinds of requests that are compared one by one. All
// others are compared together.
const maxStrata = 20

// counts are numbers of events by kind of request, pod and cell.
type counts map[string]map[string]samples.Cells

// count returns the increase of counters. Spans are those of all series of the pods, so
// that a series that begins late is detected; since is the start of the range that was read. The
// counters of pods that began in the range count from zero.
func count(series []samples.Series, spans map[string]samples.Span, f frame, since float64, began map[string]bool) counts {
	out := counts{}
	for _, s := range series {
		stratum, pod := samples.Stratum(s.Labels), samples.Pod(s.Labels)
		if out[stratum] == nil {
			out[stratum] = map[string]samples.Cells{}
		}
		if out[stratum][pod] == nil {
			out[stratum][pod] = samples.Cells{}
		}
		samples.Increase(out[stratum][pod], f.grid, s.Points, began[pod] || samples.BeganLate(s, spans[pod], f.step, since))
	}
	return out
}

// pooled adds up the kinds of requests.
func (t counts) pooled() counts {
	out := map[string]samples.Cells{}
	for _, stratum := range samples.Sorted(t) {
		for pod, cells := range t[stratum] {
			if out[pod] == nil {
				out[pod] = samples.Cells{}
			}
			for c, v := range cells {
				out[pod][c] += v
			}
		}
	}
	return counts{"": out}
}

// of returns the counts of the kinds that others have.
func (t counts) of(others counts) counts {
	out := counts{}
	for stratum, pods := range t {
		if _, ok := others[stratum]; ok {
			out[stratum] = pods
		}
	}
	return out
}

// withEvents returns the counts of the kinds with events.
func (t counts) withEvents() counts {
	out := counts{}
	for stratum := range t {
		if t.totalOf(stratum) > 0 {
			out[stratum] = t[stratum]
		}
	}
	return out
}

// within returns the counts of cells first to last, without the warm-up of the new pods.
func (t counts) within(first, last int, warm map[string]int) counts {
	return t.where(func(pod string, cell int) bool {
		start, ok := warm[pod]
		return cell >= first && cell <= last && (!ok || cell >= start)
	})
}

// except returns the counts without those of some cells.
func (t counts) except(without map[int]bool) counts {
	if len(without) == 0 {
		return t
	}
	return t.where(func(_ string, cell int) bool { return !without[cell] })
}

// where returns the counts of the cells to keep.
func (t counts) where(keep func(pod string, cell int) bool) counts {
	out := counts{}
	for stratum, pods := range t {
		out[stratum] = map[string]samples.Cells{}
		for pod, cells := range pods {
			kept := samples.Cells{}
			for c, v := range cells {
				if keep(pod, c) {
					kept[c] = v
				}
			}
			out[stratum][pod] = kept
		}
	}
	return out
}

// sum adds up all counts of a stratum in cells.
func (t counts) sum(stratum string) samples.Cells {
	out := samples.Cells{}
	for _, pod := range samples.Sorted(t[stratum]) {
		for c, v := range t[stratum][pod] {
			out[c] += v
		}
	}
	return out
}

// sums adds up all kinds of requests and pods by cell.
func (t counts) sums() samples.Cells {
	out := samples.Cells{}
	for _, stratum := range samples.Sorted(t) {
		for _, pod := range samples.Sorted(t[stratum]) {
			for c, v := range t[stratum][pod] {
				out[c] += v
			}
		}
	}
	return out
}

func (t counts) total() float64 {
	sum := 0.0
	for _, stratum := range samples.Sorted(t) {
		for _, v := range t.sum(stratum) {
			sum += v
		}
	}
	return sum
}

// totalOf returns the events of one kind.
func (t counts) totalOf(stratum string) float64 { return counts{"": t[stratum]}.total() }

// pods returns the number of pods with counts.
func (t counts) pods() int32 {
	seen := map[string]bool{}
	for _, pods := range t {
		for pod, cells := range pods {
			for _, v := range cells {
				if v > 0 {
					seen[pod] = true
				}
			}
		}
	}
	return int32(len(seen))
}

// mergeSmallKinds merges, in each of the counts, the kinds of requests beyond the largest ones into one. The
// choice follows from the old counts, so that it does not depend on the change.
func mergeSmallKinds(old counts, others ...counts) {
	keep := old.frequent()
	for _, t := range append(others, old) {
		merge(t, keep)
	}
}

// frequent returns the counts of the largest kinds of requests.
func (t counts) frequent() counts {
	if len(t) <= maxStrata {
		return maps.Clone(t)
	}
	names := samples.Sorted(t)
	sort.SliceStable(names, func(i, j int) bool {
		return t.totalOf(names[i]) > t.totalOf(names[j])
	})
	out := counts{}
	for _, n := range names[:maxStrata] {
		out[n] = t[n]
	}
	return out
}

const rest = "\x00rest"

// merge adds up the kinds of requests that are not to be kept.
func merge(t, keep counts) {
	for _, stratum := range samples.Sorted(t) {
		if _, kept := keep[stratum]; kept || stratum == rest {
			continue
		}
		if t[rest] == nil {
			t[rest] = map[string]samples.Cells{}
		}
		for pod, cells := range t[stratum] {
			if t[rest][pod] == nil {
				t[rest][pod] = samples.Cells{}
			}
			for c, v := range cells {
				t[rest][pod][c] += v
			}
		}
		delete(t, stratum)
	}
}

// totalsOf returns events and exposure of each pod, without the excluded cells.
func totalsOf(events, exposure counts, without map[int]bool) []sequential.Count {
	events, exposure = events.pooled(), exposure.pooled()
	var out []sequential.Count
	for _, pod := range samples.Sorted(exposure[""]) {
		var total sequential.Count
		for c, v := range exposure[""][pod] {
			if !without[c] {
				total.Exposure += v
				total.Events += events[""][pod][c]
			}
		}
		out = append(out, total)
	}
	return out
}

// historyOf returns the cells before the change of each old pod, in order. If calm is set,
// it omits the cells of joint disturbances of the old pods.
func historyOf(events, exposure counts, before int, calm bool) [][]sequential.Count {
	events, exposure = events.pooled(), exposure.pooled()
	sums := make([]sequential.Block, before)
	for k := range sums {
		sums[k] = sequential.Block{NewExposure: 1, OldExposure: 1, Cell: k}
		for _, pod := range samples.Sorted(exposure[""]) {
			sums[k].Old += events[""][pod][k-before]
		}
	}
	leftOut := map[int]bool{}
	if calm {
		leftOut, _ = sequential.JointDisturbances(sums, math.Inf(1))
	}
	var out [][]sequential.Count
	for _, pod := range samples.Sorted(exposure[""]) {
		cells := make([]sequential.Count, before)
		for k := range cells {
			if !leftOut[k] {
				cells[k] = sequential.Count{Events: events[""][pod][k-before], Exposure: exposure[""][pod][k-before]}
			}
		}
		out = append(out, cells)
	}
	return out
}

// newCellsOf returns the cells of each new pod, in order and without the excluded cells: a
// disturbance is one event rather than many.
func newCellsOf(events, exposure counts, last int, without map[int]bool) [][]sequential.Count {
	events, exposure = events.pooled(), exposure.pooled()
	var out [][]sequential.Count
	for _, pod := range samples.Sorted(exposure[""]) {
		cells := make([]sequential.Count, max(0, last+1))
		for k := range cells {
			if !without[k] {
				cells[k] = sequential.Count{Events: events[""][pod][k], Exposure: exposure[""][pod][k]}
			}
		}
		out = append(out, cells)
	}
	return out
}
