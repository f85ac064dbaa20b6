package evaluate

import (
	"fmt"
	"maps"
	"math"
	"sort"
	"strconv"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/samples"
	"github.com/breakwater-dev/breakwater/judge/sequential"
)

// tails are the shares of slow requests at which latencies are compared.
var tails = []float64{0.5, 0.1, 0.03, 0.005}

// buckets are the cumulative counts by upper bound.
type buckets map[float64]counts

func readBuckets(series []samples.Series, f frame, since float64, first, last int, warm map[string]int) buckets {
	byBound := map[float64][]samples.Series{}
	for _, s := range series {
		bound, err := strconv.ParseFloat(s.Labels["le"], 64)
		if err != nil {
			continue
		}
		byBound[bound] = append(byBound[bound], s)
	}
	spans := samples.Spans(series)
	out := buckets{}
	for bound, s := range byBound {
		out[bound] = count(s, spans, f, since, nil).within(first, last, warm)
	}
	return out
}

func (b buckets) bounds() []float64 {
	out := make([]float64, 0, len(b))
	for bound := range b {
		out = append(out, bound)
	}
	sort.Float64s(out)
	return out
}

func (b buckets) all() counts {
	if t, ok := b[math.Inf(1)]; ok {
		return t
	}
	return counts{}
}

// histogram has the cumulative counts of one kind of request.
type histogram struct{ bounds, counts []float64 }

func (b buckets) histogram(stratum string, bounds []float64) histogram {
	h := histogram{bounds: bounds}
	for _, bound := range bounds {
		total := 0.0
		for _, pod := range samples.Sorted(b[bound][stratum]) {
			for _, v := range b[bound][stratum][pod] {
				total += v
			}
		}
		if n := len(h.counts); n > 0 {
			total = math.Max(total, h.counts[n-1])
		}
		h.counts = append(h.counts, total)
	}
	return h
}

func (h histogram) total() float64 {
	if len(h.counts) == 0 {
		return 0
	}
	return h.counts[len(h.counts)-1]
}

// quantile returns the value below which a share of the requests is, linear
// within a bucket.
func (h histogram) quantile(share float64) float64 {
	target := share * h.total()
	for i, c := range h.counts {
		if c < target || c == 0 {
			continue
		}
		if math.IsInf(h.bounds[i], 1) {
			return h.bounds[max(0, i-1)]
		}
		low, below := 0.0, 0.0
		if i > 0 {
			low, below = h.bounds[i-1], h.counts[i-1]
		}
		if c == below {
			return h.bounds[i]
		}
		return low + (h.bounds[i]-low)*(target-below)/(c-below)
	}
	return 0
}

// bound returns the finite bucket bound that is exceeded by about the share tails[k] of
// requests, and the share above it. No two tails have the same bound: if buckets are so wide
// that one bound is the nearest for several tails, the rarer tail gets the next higher bound.
func (h histogram) bound(k int) (index int, above float64) {
	lowest := 0
	for _, share := range tails[:k+1] {
		best := math.Inf(1)
		index = -1
		for i := lowest; i < len(h.bounds) && !math.IsInf(h.bounds[i], 1); i++ {
			a := (h.total() - h.counts[i] + 0.5) / (h.total() + 1)
			if distance := math.Abs(math.Log(a/(1-a)) - math.Log(share/(1-share))); distance < best && a < 0.97 {
				best, index, above = distance, i, a
			}
		}
		if index < 0 {
			return -1, 0
		}
		lowest = index + 1
	}
	return index, above
}

// latency compares the shares of requests that are slower than bounds near
// quantiles of the old pods.
func latency(d Data, f frame) outcome {
	newB := readBuckets(d.New.All, f, f.readSince(), 0, f.last, f.firstCells(d.New.All))
	oldB := readBuckets(d.Old.All, f, f.readSince(), -f.before, d.lastOld(f), f.startedCells(samples.Spans(d.Old.All)))
	dayB := readBuckets(d.Day.All, f, f.dayReadSince(), 0, f.cells-1, nil)
	var bounds []float64
	for _, b := range newB.bounds() {
		if _, ok := oldB[b]; ok {
			bounds = append(bounds, b)
		}
	}
	if len(bounds) < 2 {
		return withoutCommonBounds(d, newB, oldB)
	}
	newB, oldB, dayB = sameKinds(newB, oldB, dayB)
	relative, absolute, _ := change(d.SmallestChange)
	var best outcome
	var values []float64
	compared := false
	for i, tail := range tails {
		s, factor, dayFactor, value := slow(newB, oldB, dayB, bounds, i)
		compared = compared || len(s.newAll) > 0
		c := s.compare(f, d.ReferenceBefore, true, d.Direction)
		o := d.outcome(c, s, f)
		if c.reference == v1alpha1.ReferenceBefore && dayFactor > 0 {
			factor = nearer(factor, dayFactor)
		}
		needed := relative
		if tail < 0.05 {
			// A tail varies more than the middle.
			needed *= 2.5
		}
		o.logE = c.logE
		if !matters(value, value/factor, factor, needed, absolute, d.Direction) {
			o.logE = math.Inf(-1)
		}
		o.New.Value, o.Old.Value = number(value), number(value/factor)
		o.quantile = "quantile " + number(1-tail)
		values = append(values, o.logE)
		if i == 0 || best.New == nil || o.logE > best.logE {
			best = o
		}
	}
	best.logE = sequential.LogMean(values)
	switch {
	case oldB.all().total() < 1:
		best.newSamples = newB.all().total() // nothing was compared, but the message counts them
	case !compared && newB.all().total() >= 1:
		ofNew, ofOld := d.sides()
		best.reason = v1alpha1.ReasonInsufficientData
		best.message = fmt.Sprintf("nearly all requests %[2]s are above the highest bound that the histograms %[1]s and %[2]s have in common", ofNew, ofOld)
	}
	newAll, oldAll := maps.Clone(newB.all()), maps.Clone(oldB.all())
	mergeSmallKinds(oldAll, newAll)
	best.noPass = d.otherKindsOnly(newAll, oldAll, f)
	return best
}

// withoutCommonBounds is the outcome of histograms that cannot be compared.
func withoutCommonBounds(d Data, newB, oldB buckets) outcome {
	o := outcome{newSamples: newB.all().total(), oldSamples: oldB.all().total()}
	ofNew, ofOld := d.sides()
	switch {
	case o.newSamples > 0 && o.oldSamples > 0:
		o.reason, o.message = v1alpha1.ReasonNoReference, fmt.Sprintf("the histograms %s and %s have no bucket in common", ofNew, ofOld)
	case o.oldSamples > 0:
		o.reason, o.message = v1alpha1.ReasonNoTraffic, fmt.Sprintf("there are requests %s and none %s", ofOld, ofNew)
	case len(newB)+len(oldB) == 0:
		o.reason, o.message = v1alpha1.ReasonInsufficientData, "no series has label le: the query does not find the buckets of a histogram"
	}
	return o
}

// slow returns the requests that are slower than the bound of their kind. It also returns
// the new quantile at the bound (value), and by which estimated factor it differs from
// that of the old pods (factor) and that of the day before (dayFactor). A dayFactor of 0
// is unknown.
func slow(newB, oldB, dayB buckets, bounds []float64, tail int) (s comparedCounts, factor, dayFactor, value float64) {
	newAll, oldAll, dayAll := newB.all(), oldB.all(), dayB.all()
	s = comparedCounts{newEvents: counts{}, newAll: counts{}, oldEvents: counts{}, oldAll: counts{}, dayEvents: counts{}, dayAll: counts{}}
	logFactor, logValue, weight := 0.0, 0.0, 0.0
	dayLog, dayWeight := 0.0, 0.0
	for _, stratum := range samples.Sorted(newAll) {
		oldH, newH := oldB.histogram(stratum, bounds), newB.histogram(stratum, bounds)
		if oldH.total() < 1 {
			continue
		}
		index, above := oldH.bound(tail)
		if index < 0 {
			continue
		}
		b := bounds[index]
		s.newAll[stratum], s.oldAll[stratum], s.dayAll[stratum] = newAll[stratum], oldAll[stratum], dayAll[stratum]
		s.newEvents[stratum] = minus(newAll[stratum], newB[b][stratum])
		s.oldEvents[stratum] = minus(oldAll[stratum], oldB[b][stratum])
		s.dayEvents[stratum] = minus(dayAll[stratum], dayB[b][stratum])
		if newH.total() < 1 {
			continue
		}
		oldQ, newQ := oldH.quantile(1-above), newH.quantile(1-above)
		if oldQ > 0 && newQ > 0 {
			logFactor += newH.total() * math.Log(newQ/oldQ)
			logValue += newH.total() * math.Log(newQ)
			weight += newH.total()
			if dayH := dayB.histogram(stratum, bounds); dayH.total() >= defaultEvents && dayH.quantile(1-above) > 0 {
				dayLog += newH.total() * math.Log(newQ/dayH.quantile(1-above))
				dayWeight += newH.total()
			}
		}
	}
	if weight == 0 {
		return s, 1, 0, 0
	}
	if dayWeight > 0 {
		dayFactor = math.Exp(dayLog / dayWeight)
	}
	return s, math.Exp(logFactor / weight), dayFactor, math.Exp(logValue / weight)
}

// sameKinds adds up kinds of requests if most new requests are of a kind that the old pods do not have: all kinds
// if the new version renames them, and otherwise all but the frequent ones that both sides have, because the names of the others
// may contain ids.
func sameKinds(newB, oldB, dayB buckets) (buckets, buckets, buckets) {
	newAll, oldAll := newB.all(), oldB.all()
	if overlapOf(newAll, oldAll) >= 0.5 {
		return newB, oldB, dayB
	}
	if requestsRenamed(newAll, oldAll) {
		return newB.pooled(), oldB.pooled(), dayB.pooled()
	}
	common := oldAll.frequent().withEvents().of(newAll.withEvents())
	for _, b := range []buckets{newB, oldB, dayB} {
		for _, t := range b {
			merge(t, common)
		}
	}
	return newB, oldB, dayB
}

func (b buckets) pooled() buckets {
	out := buckets{}
	for bound, t := range b {
		out[bound] = t.pooled()
	}
	return out
}

func overlapOf(newAll, oldAll counts) float64 {
	common := newAll.of(oldAll.withEvents())
	if total := newAll.total(); total > 0 {
		return common.total() / total
	}
	return 1
}

func minus(all, below map[string]samples.Cells) map[string]samples.Cells {
	out := map[string]samples.Cells{}
	for pod, cells := range all {
		out[pod] = samples.Cells{}
		for c, v := range cells {
			if above := v - below[pod][c]; above > 1e-9 {
				out[pod][c] = above
			}
		}
	}
	return out
}
