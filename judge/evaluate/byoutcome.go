package evaluate

import (
	"math"
	"slices"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/sequential"
)

// The kind of a request may follow from its outcome: a request that fails before it is routed has no route. The share of
// events of such a kind does not show how many there are, so these events are also compared with all requests.

const (
	// nearlyAll is the share of events from which on a kind may follow from the outcome, if one side has manyOfKind requests of it.
	nearlyAll  = 0.9
	manyOfKind = 5
)

// kindsByOutcome has the kinds that may follow from the outcome of the request: those that only one side has, and those of
// which nearly all requests of one side are events.
func (s comparedCounts) kindsByOutcome() counts {
	nearly := func(events, all counts, stratum string) bool {
		n := all.totalOf(stratum)
		return n >= manyOfKind && events.totalOf(stratum) >= nearlyAll*n
	}
	kinds := counts{}
	for _, side := range []counts{s.newAll, s.oldAll} {
		for stratum := range side {
			oneSide := s.oldAll.totalOf(stratum) == 0 || s.newAll.totalOf(stratum) == 0
			if oneSide || nearly(s.oldEvents, s.oldAll, stratum) || nearly(s.newEvents, s.newAll, stratum) {
				kinds[stratum] = nil
			}
		}
	}
	return kinds
}

// byOutcome compares the events of kindsByOutcome with all requests, and all events, which must be more, too: a new
// version may have other kinds of which as many requests fail.
func (d Data) byOutcome(s comparedCounts, f frame) comparison {
	compare := func(s comparedCounts) comparison {
		return d.ifItMatters(s.compare(f, d.ReferenceBefore, true, d.Direction), d.Direction)
	}
	kinds, all := s.kindsByOutcome(), s.pooled()
	ofKinds := all
	ofKinds.newEvents, ofKinds.oldEvents, ofKinds.dayEvents = s.newEvents.of(kinds).pooled(), s.oldEvents.of(kinds).pooled(), s.dayEvents.of(kinds).pooled()
	if ofKinds.newEvents.total() == 0 {
		return comparison{logE: math.Inf(-1)}
	}
	c := compare(ofKinds)
	c.logE = math.Min(c.logE, compare(all).logE)
	return d.exceptCallers(c, s)
}

// exceptCallers returns the comparison of events that callers cause without what it has from the time before the
// change: callers may send more of them than then. If most requests of the new pods have such an event, the version is the
// likely cause.
func (d Data) exceptCallers(c comparison, s comparedCounts) comparison {
	switch {
	case !d.CausedByCallers || 2*s.newEvents.total() > s.newAll.total():
	case c.reference != v1alpha1.ReferenceOldPods:
		c.logE, c.excepted = math.Inf(-1), true
	case c.alsoBefore:
		c.logE = math.Min(c.logE, c.logENow)
	}
	return c
}

// withKindsByOutcome returns the comparison with the larger e-value. Its e-value is the mean of both, which is an e-value.
// Kinds that follow from the outcome are rare, so their comparison has a tenth of the weight.
func (d Data) withKindsByOutcome(c, byOutcome comparison) comparison {
	c = d.ifItMatters(c, d.Direction)
	values := append(slices.Repeat([]float64{c.logE}, 9), byOutcome.logE)
	if byOutcome.logE > c.logE {
		c = byOutcome
	}
	c.logE = sequential.LogMean(values)
	return c
}
