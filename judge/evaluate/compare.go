package evaluate

import (
	"math"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/samples"
	"github.com/breakwater-dev/breakwater/judge/sequential"
)

// sides are the counts of one comparison, limited to the compared cells.
type sides struct {
	newEvents, newAll counts
	// oldEvents and oldAll contain the cells of the analysis and the cells before it.
	oldEvents, oldAll counts
	dayEvents, dayAll counts
}

// comparison is the result of a test of counts.
type comparison struct {
	// evidence is the logarithm of the e-value.
	evidence float64
	// ratio is the estimated factor.
	ratio      float64
	dispersion float64
	reference  v1alpha1.Reference
	// new and old counts that were compared.
	newEvents, newAll, oldEvents, oldAll float64
	blocks                               []sequential.Block
}

// pair returns the blocks of each kind of request: cell by cell against the old
// pods or, where these have no counts, against the cells before the change.
func (s sides) pair(f frame, samePods bool) (blocks map[string][]sequential.Block, concurrent, all float64) {
	blocks = map[string][]sequential.Block{}
	for _, stratum := range samples.Sorted(s.newAll) {
		ne, na := s.newEvents.sum(stratum), s.newAll.sum(stratum)
		oe, oa := s.oldEvents.sum(stratum), s.oldAll.sum(stratum)
		for i := 0; i <= f.last; i++ {
			if na[i] <= 0 {
				continue
			}
			b := sequential.Block{New: ne[i], NewExposure: na[i], Cell: i}
			if !samePods && oa[i] > 0 {
				b.Old, b.OldExposure = oe[i], oa[i]
				concurrent += na[i]
			} else {
				for _, j := range f.reference(i) {
					b.Old += oe[j]
					b.OldExposure += oa[j]
				}
			}
			all += na[i]
			blocks[stratum] = append(blocks[stratum], b)
		}
	}
	return blocks, concurrent, all
}

// day returns the blocks against the same cells of the day before.
func (s sides) day(f frame) map[string][]sequential.Block {
	blocks := map[string][]sequential.Block{}
	for _, stratum := range samples.Sorted(s.newAll) {
		ne, na := s.newEvents.sum(stratum), s.newAll.sum(stratum)
		de, da := s.dayEvents.sum(stratum), s.dayAll.sum(stratum)
		for i := 0; i <= f.last; i++ {
			if na[i] > 0 && da[i] > 0 {
				blocks[stratum] = append(blocks[stratum], sequential.Block{New: ne[i], NewExposure: na[i], Old: de[i], OldExposure: da[i], Cell: i})
			}
		}
	}
	return blocks
}

func flatten(blocks map[string][]sequential.Block) []sequential.Block {
	var out []sequential.Block
	for _, stratum := range samples.Sorted(blocks) {
		out = append(out, blocks[stratum]...)
	}
	return out
}

// compare tests whether the rate of the new pods is worse. proportion is true for a share
// of events, which varies less than a rate.
func (s sides) compare(f frame, samePods, proportion bool, direction v1alpha1.Direction) comparison {
	byStratum, concurrent, all := s.pair(f, samePods)
	if overlap(byStratum) < 0.5 && len(s.newAll) > 1 {
		// The kinds of requests have other names in the new version.
		s = sides{s.newEvents.pooled(), s.newAll.pooled(), s.oldEvents.pooled(), s.oldAll.pooled(), s.dayEvents.pooled(), s.dayAll.pooled()}
		byStratum, concurrent, all = s.pair(f, samePods)
	}
	c := comparison{reference: v1alpha1.ReferenceBefore, blocks: flatten(byStratum)}
	if concurrent*2 >= all && concurrent > 0 {
		c.reference = v1alpha1.ReferenceOldPods
	}
	for _, b := range c.blocks {
		c.newEvents += b.New
		c.newAll += b.NewExposure
		c.oldEvents += b.Old
		c.oldAll += b.OldExposure
	}
	// A shock to both new and old pods cancels out only if they are compared at the same time.
	shocks := map[int]bool{}
	if c.reference == v1alpha1.ReferenceOldPods {
		shocks = sequential.Shocks(c.blocks)
	}
	c.blocks = without(c.blocks, shocks)
	c.ratio = sequential.Ratio(c.blocks)
	c.dispersion = sequential.BetweenPods(totalsOf(s.oldEvents, s.oldAll, shocks))
	history := historyOf(s.oldEvents, s.oldAll, f.before, c.reference == v1alpha1.ReferenceOldPods)
	history = append(history, lookOf(s.newEvents, s.newAll, f.last, shocks)...)
	for _, size := range []int{1, 4} {
		c.dispersion = math.Max(c.dispersion, sequential.OverTime(c.blocks, c.ratio, history, size))
	}
	if share := (c.newEvents + c.oldEvents) / math.Max(c.newAll+c.oldAll, 1); proportion && share < 1 {
		c.dispersion *= math.Max(1-share, 0.2)
	}
	c.evidence = evidence(c.blocks, c.dispersion, direction)
	if c.reference == v1alpha1.ReferenceBefore {
		day := without(flatten(s.day(f)), shocks)
		exposure := 0.0
		for _, b := range day {
			exposure += b.OldExposure
		}
		if exposure > 0.1*c.newAll {
			// A daily pattern is not an effect of the change: both references must agree. The
			// smaller of two e-values is an e-value.
			c.evidence = math.Min(c.evidence, evidence(day, c.dispersion, direction))
			c.ratio = nearer(c.ratio, sequential.Ratio(day))
		}
	}
	return c
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

// overlap returns the share of the new exposure that has something to compare with.
func overlap(blocks map[string][]sequential.Block) float64 {
	with, all := 0.0, 0.0
	for _, b := range flatten(blocks) {
		all += b.NewExposure
		if b.OldExposure > 0 {
			with += b.NewExposure
		}
	}
	if all == 0 {
		return 0
	}
	return with / all
}

func evidence(blocks []sequential.Block, dispersion float64, direction v1alpha1.Direction) float64 {
	switch direction {
	case v1alpha1.DirectionLower:
		return sequential.RatesLower(blocks, dispersion)
	case v1alpha1.DirectionEither:
		return sequential.LogMean([]float64{sequential.RatesLower(blocks, dispersion), sequential.RatesHigher(blocks, dispersion)})
	default:
		return sequential.RatesHigher(blocks, dispersion)
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

// matters reports whether a change by factor ratio to value is as large as the
// smallest one that matters, in a bad direction.
func matters(value, ratio, relative, absolute float64, direction v1alpha1.Direction) bool {
	if ratio == 0 {
		return direction != v1alpha1.DirectionHigher
	}
	old := value / ratio
	higher := ratio >= 1+relative && value-old >= absolute
	lower := 1/ratio >= 1/math.Max(1-relative, 0.01) && old-value >= absolute
	switch direction {
	case v1alpha1.DirectionLower:
		return lower
	case v1alpha1.DirectionEither:
		return higher || lower
	default:
		return higher
	}
}
