package evaluate

import (
	"maps"
	"math"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/samples"
	"github.com/breakwater-dev/breakwater/judge/sequential"
)

// comparedCounts are the counts of one comparison, limited to the compared cells.
type comparedCounts struct {
	newEvents, newAll counts
	// oldEvents and oldAll contain the cells of the analysis and the cells before it.
	oldEvents, oldAll counts
	dayEvents, dayAll counts
}

// pooled adds up the kinds of requests.
func (s comparedCounts) pooled() comparedCounts {
	return comparedCounts{s.newEvents.pooled(), s.newAll.pooled(), s.oldEvents.pooled(), s.oldAll.pooled(), s.dayEvents.pooled(), s.dayAll.pooled()}
}

// comparison is the result of a test of counts.
type comparison struct {
	// logE is the logarithm of the e-value.
	logE float64
	// ratio is the estimated factor between the rates of the new and the old pods.
	ratio      float64
	dispersion float64
	reference  v1alpha1.Reference
	// totals include the cells that were left out of a comparison at the same time.
	totals
	// leftOutNew and leftOutOld are the events in the cells that were left out.
	leftOutNew, leftOutOld float64
	// blocks are the counts without the cells that were left out. The record has these numbers. Other results also depend
	// on the day before, if it is compared.
	blocks []sequential.Block
	// alsoBefore is true if the cells before the change are compared in addition to those at the same time.
	// oldRateNow is then the rate of the old pods at the same time, and logENow the evidence from this time alone.
	alsoBefore          bool
	oldRateNow, logENow float64
	// excepted is true if the events are not compared, see exceptCallers.
	excepted bool
}

// totals are the counts of the new and the old pods.
type totals struct{ newEvents, newAll, oldEvents, oldAll float64 }

// pair returns a block for each cell and kind of request for which both new and old pods
// have counts. share is the share of all new counts that are in these blocks.
func (s comparedCounts) pair(f frame) (blocks []sequential.Block, share float64) {
	concurrent, all := 0.0, 0.0
	for _, stratum := range samples.Sorted(s.newAll) {
		ne, na := s.newEvents.sum(stratum), s.newAll.sum(stratum)
		oe, oa := s.oldEvents.sum(stratum), s.oldAll.sum(stratum)
		for i := 0; i <= f.last; i++ {
			all += na[i]
			if na[i] > 0 && oa[i] > 0 && i <= f.oldEnd {
				concurrent += na[i]
				blocks = append(blocks, sequential.Block{New: ne[i], NewExposure: na[i], Old: oe[i], OldExposure: oa[i], Cell: i})
			}
		}
	}
	return blocks, concurrent / math.Max(all, 1e-9)
}

// pools returns the new cells of each kind of request, and all counts of old in the cells
// from first to last.
func (s comparedCounts) pools(f frame, oldEvents, oldAll counts, first, last int) []sequential.Pool {
	var out []sequential.Pool
	for _, stratum := range samples.Sorted(s.newAll) {
		ne, na := s.newEvents.sum(stratum), s.newAll.sum(stratum)
		p := sequential.Pool{New: make([]sequential.Count, max(0, f.last+1))}
		for i := range p.New {
			p.New[i] = sequential.Count{Events: ne[i], Exposure: na[i]}
		}
		p.Old.Events, p.Old.Exposure = oldEvents.sum(stratum).Sum(first, last), oldAll.sum(stratum).Sum(first, last)
		out = append(out, p)
	}
	return out
}

const (
	// sparse is the number of old requests at the same time below which the old requests
	// before the change are compared, too: chance is then larger than any drift.
	sparse = 300
	// longestDisturbance is how long, in seconds, a disturbance of the new pods alone may last: the sum of the cells, each
	// multiplied by its share of failed requests. A tenth of a longer analysis is a disturbance, too.
	longestDisturbance = 60
	// minEach is the e-value that each of two references must have, if both are used together.
	minEach = 3
)

// compare tests whether the rate of the new pods is worse. proportion is true for a share
// of events, which varies less than a rate.
func (s comparedCounts) compare(f frame, referenceBefore, proportion bool, direction v1alpha1.Direction) comparison {
	if blocks, share := s.pair(f); !referenceBefore && share >= 0.5 {
		return s.compareNow(f, blocks, proportion, direction)
	}
	return s.compareBefore(f, referenceBefore, proportion, direction)
}

// compareNow compares cell by cell with the old pods.
func (s comparedCounts) compareNow(f frame, blocks []sequential.Block, proportion bool, direction v1alpha1.Direction) comparison {
	c := comparison{reference: v1alpha1.ReferenceOldPods, totals: totalsOfBlocks(blocks)}
	// A disturbance of new and old pods together has a cause outside of the release, so its cells are
	// left out. Only a comparison at the same time can recognize it.
	longest := math.Inf(1)
	if proportion {
		longest = math.Max(longestDisturbance/f.grid.Width, float64(f.last+1)/10)
	}
	leftOut, faulty := sequential.JointDisturbances(blocks, longest)
	maps.Copy(leftOut, disturbances(s.newEvents, s.newAll, 0, f.last, longest))
	maps.Copy(leftOut, disturbances(s.oldEvents, s.oldAll, 0, f.last, math.Inf(1)))
	c.blocks = without(blocks, leftOut)
	now := c.compared()
	c.leftOutNew, c.leftOutOld = c.newEvents-now.newEvents, c.oldEvents-now.oldEvents
	c.ratio = sequential.Ratio(c.blocks)
	history := historyOf(s.oldEvents, s.oldAll, f.before, true)
	// The beginning or end of a fault is no dispersion.
	during, outside := maps.Clone(leftOut), maps.Clone(leftOut)
	for cell := range f.last + 1 {
		if faulty[cell] {
			outside[cell] = true
		} else {
			during[cell] = true
		}
	}
	history = append(history, newCellsOf(s.newEvents, s.newAll, f.last, outside)...)
	history = append(history, newCellsOf(s.newEvents, s.newAll, f.last, during)...)
	c.disperse(s, c.blocks, history, leftOut, proportion)
	c.logE = logEForBlocks(c.blocks, c.dispersion, direction)
	if c.oldAll >= sparse {
		return c
	}
	for _, side := range []*counts{&s.newEvents, &s.newAll, &s.oldEvents, &s.oldAll} {
		*side = side.except(leftOut)
	}
	pools := s.pools(f, s.oldEvents, s.oldAll, -f.before, f.last)
	c.logENow, c.logE = c.logE, logEForPools(pools, c.dispersion, direction, 1)
	c.blocks, c.alsoBefore = sequential.Blocks(pools, 0, 0), true
	_, c.oldRateNow = now.rates()
	c.ratio = nearer(c.ratio, sequential.Ratio(c.blocks))
	return c
}

// compareBefore compares with the cells before the change, and with the same cells of
// the day before where these have counts.
func (s comparedCounts) compareBefore(f frame, referenceBefore, proportion bool, direction v1alpha1.Direction) comparison {
	last := f.oldEnd
	if referenceBefore {
		last = -1
	}
	// A disturbance before the change hides a fault, and one after it looks like a fault.
	c := comparison{reference: v1alpha1.ReferenceBefore}
	s.oldEvents, s.oldAll, c.leftOutOld = calm(s.oldEvents, s.oldAll, -f.before, last)
	s.newEvents, s.newAll, c.leftOutNew = calm(s.newEvents, s.newAll, 0, f.last)
	s.dayEvents, s.dayAll, _ = calm(s.dayEvents, s.dayAll, 0, f.cells-1)
	pools := s.pools(f, s.oldEvents, s.oldAll, -f.before, last)
	c.blocks = sequential.Blocks(pools, 0, 0)
	c.totals = c.compared()
	c.ratio = sequential.Ratio(c.blocks)
	history := historyOf(s.oldEvents, s.oldAll, f.before, false)
	history = append(history, newCellsOf(s.newEvents, s.newAll, f.last, nil)...)
	c.disperse(s, nil, history, nil, proportion)
	c.logE = logEForPools(pools, c.dispersion, direction, 2)
	day := s.pools(f, s.dayEvents, s.dayAll, 0, f.last)
	exposure := 0.0
	for _, p := range day {
		exposure += p.Old.Exposure
	}
	if exposure <= 0.1*c.newAll {
		return c
	}
	// A daily pattern is not an effect of the change: both references must agree. Together they
	// have more counts than each alone.
	daily := logEForPools(day, c.dispersion, direction, 2)
	if math.Min(c.logE, daily) < math.Log(minEach) {
		c.logE = math.Min(c.logE, daily)
	} else {
		for i := range pools {
			pools[i].Old.Events += day[i].Old.Events
			pools[i].Old.Exposure += day[i].Old.Exposure
		}
		c.logE = logEForPools(pools, c.dispersion, direction, 2)
	}
	c.ratio = nearer(c.ratio, sequential.Ratio(sequential.Blocks(day, 0, 0)))
	return c
}

// compared returns the counts without the cells that were left out.
func (c comparison) compared() totals { return totalsOfBlocks(c.blocks) }

// totalsOfBlocks adds up the blocks that are compared: those of kinds of requests that both sides have.
func totalsOfBlocks(blocks []sequential.Block) (t totals) {
	for _, b := range blocks {
		if b.NewExposure <= 0 || b.OldExposure <= 0 {
			continue
		}
		t.newEvents += b.New
		t.newAll += b.NewExposure
		t.oldEvents += b.Old
		t.oldAll += b.OldExposure
	}
	return t
}

// rates returns events per request, or per unit of exposure.
func (t totals) rates() (newRate, oldRate float64) {
	return t.newEvents / math.Max(t.newAll, 1e-9), t.oldEvents / math.Max(t.oldAll, 1e-9)
}

// disperse estimates the dispersion between pods and over time.
func (c *comparison) disperse(s comparedCounts, blocks []sequential.Block, history [][]sequential.Count, without map[int]bool, proportion bool) {
	c.dispersion = sequential.BetweenPods(totalsOf(s.oldEvents, s.oldAll, without))
	for _, size := range []int{1, 4} {
		c.dispersion = math.Max(c.dispersion, sequential.OverTime(blocks, c.ratio, history, size))
	}
	if share := (c.newEvents + c.oldEvents) / math.Max(c.newAll+c.oldAll, 1); proportion && share < 1 {
		c.dispersion *= math.Max(1-share, 0.2)
	}
}

// calm returns the counts from first to last without the cells of disturbances, and the events of these cells.
func calm(events, all counts, first, last int) (calmEvents, calmAll counts, leftOut float64) {
	without := disturbances(events, all, first, last, math.Inf(1))
	events, all = events.within(first, last, nil), all.within(first, last, nil)
	calmEvents = events.except(without)
	return calmEvents, all.except(without), events.total() - calmEvents.total()
}

// disturbances returns the cells from first to last in which the pods were disturbed, for at most longest whole cells.
func disturbances(events, all counts, first, last int, longest float64) map[int]bool {
	cells := make([]sequential.Count, max(0, last-first+1))
	sumEvents, sumAll := events.sums(), all.sums()
	for i := range cells {
		cells[i] = sequential.Count{Events: sumEvents[first+i], Exposure: sumAll[first+i]}
	}
	out := map[int]bool{}
	for i := range sequential.Disturbances(cells, longest) {
		out[first+i] = true
	}
	return out
}

func without(blocks []sequential.Block, cells map[int]bool) []sequential.Block {
	out := blocks[:0:0]
	for _, b := range blocks {
		if !cells[b.Cell] {
			out = append(out, b)
		}
	}
	return out
}

func logEForBlocks(blocks []sequential.Block, dispersion float64, direction v1alpha1.Direction) float64 {
	return directed(direction,
		func() float64 { return sequential.RatesHigher(blocks, dispersion, 1) },
		func() float64 { return sequential.RatesLower(blocks, dispersion, 1) })
}

func logEForPools(pools []sequential.Pool, dispersion float64, direction v1alpha1.Direction, span int) float64 {
	return directed(direction,
		func() float64 { return sequential.PoolsHigher(pools, dispersion, span) },
		func() float64 { return sequential.PoolsLower(pools, dispersion, span) })
}

func directed(direction v1alpha1.Direction, higher, lower func() float64) float64 {
	switch direction {
	case v1alpha1.DirectionLower:
		return lower()
	case v1alpha1.DirectionEither:
		return sequential.LogMean([]float64{lower(), higher()})
	default:
		return higher()
	}
}

// nearer returns the factor that is nearer to 1, or 1 if they disagree.
func nearer(a, b float64) float64 {
	if (a > 1) != (b > 1) {
		return 1
	}
	if math.Abs(math.Log(a)) < math.Abs(math.Log(b)) {
		return a
	}
	return b
}

// matters reports whether the change is in a bad direction and at least the smallest one that matters.
func (c comparison) matters(relative, absolute float64, direction v1alpha1.Direction) bool {
	compared := c.compared()
	value, old := compared.rates()
	ratio := c.ratio
	if compared.newEvents == 0 {
		ratio = 0
	}
	if ratio > 0 {
		old = value / ratio // without a different mix of kinds
	}
	return matters(value, old, ratio, relative, absolute, direction)
}

// matters reports whether a change from old to value, by the factor ratio, is in a bad direction and
// at least the smallest change that matters.
func matters(value, old, ratio, relative, absolute float64, direction v1alpha1.Direction) bool {
	higher := ratio >= 1+relative && value-old >= absolute
	lower := ratio <= math.Max(1-relative, 0.01) && old-value >= absolute
	switch direction {
	case v1alpha1.DirectionLower:
		return lower
	case v1alpha1.DirectionEither:
		return higher || lower
	default:
		return higher
	}
}
