package evaluate

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/samples"
	"github.com/breakwater-dev/breakwater/judge/sequential"
)

// outcome is the comparison of one metric at one look.
type outcome struct {
	v1alpha1.Evidence
	// logE is the logarithm of the e-value, at most 0 if the change does not matter.
	logE float64
	// newSamples and oldSamples are compared with the minimum of data.
	newSamples, oldSamples float64
	// confidenceInterval returns the confidence interval of the change. Its computation takes longer than
	// that of the e-value.
	confidenceInterval func(alpha float64) *v1alpha1.ConfidenceInterval
	// alsoBefore is true if the old pods are compared at the same time and before the change.
	alsoBefore bool
	// quantile is which quantile of a latency the values are.
	quantile string
	// noPass is why the metric cannot pass.
	noPass string
	// reason is why there is no comparison, if there is none.
	reason, message string
}

// read turns the series of both sides into counts.
func (d Data) read(f frame, series func(Pair) []samples.Series) (newCounts, oldCounts, dayCounts counts) {
	newSpans, oldSpans, daySpans := samples.Spans(d.New.All), samples.Spans(d.Old.All), samples.Spans(d.Day.All)
	newCounts = count(series(d.New), newSpans, f, f.readSince(), d.began(f)).within(0, f.last, f.firstCells(d.New.All))
	// The first minute of an old pod is not compared, so its first value does not matter.
	oldCounts = count(series(d.Old), oldSpans, f, f.readSince(), nil).within(-f.before, d.lastOld(f), f.startedCells(oldSpans))
	dayCounts = count(series(d.Day), daySpans, f, f.dayReadSince(), nil).within(0, f.cells-1, nil)
	return newCounts, oldCounts, dayCounts
}

// began returns the new pods that began in the range that was read. During probation the samples of
// the old pods are moved, so they do not show when Prometheus scraped.
func (d Data) began(f frame) map[string]bool {
	scraped := d.New.All
	if !d.ReferenceBefore {
		scraped = slices.Concat(d.New.All, d.Old.All)
	}
	return samples.Began(scraped, f.grid, f.readSince(), samples.Pod)
}

func all(p Pair) []samples.Series { return p.All }
func bad(p Pair) []samples.Series { return p.Bad }

// ratio compares the share of bad events.
func ratio(d Data, f frame) outcome {
	var s comparedCounts
	s.newAll, s.oldAll, s.dayAll = d.read(f, all)
	s.newEvents, s.oldEvents, s.dayEvents = d.read(f, bad)
	crossed := !kindsContained(s.newEvents, s.newAll) || !kindsContained(s.oldEvents, s.oldAll)
	if crossed {
		return crossRatio(d, s, f)
	}
	if requestsRenamed(s.newAll, s.oldAll) {
		s = s.pooled()
	}
	higher, ofOutcome := d.Direction == v1alpha1.DirectionHigher, comparison{}
	if higher {
		ofOutcome = d.byOutcome(s, f)
	}
	mergeSmallKinds(s.oldAll, s.newAll, s.newEvents, s.oldEvents, s.dayAll, s.dayEvents)
	c := s.compare(f, d.ReferenceBefore, true, d.Direction)
	if _, noKind := s.newAll[""]; noKind && len(s.newAll) == 1 {
		c = d.exceptCallers(c, s)
	}
	if higher {
		c = d.withKindsByOutcome(c, ofOutcome)
	}
	o := d.outcome(c, s, f)
	o.noPass = d.otherKindsOnly(s.newAll, s.oldAll, f)
	return o
}

// fewOfKinds is the share of old requests below which the kinds that the new pods have are no proof.
const fewOfKinds = 0.2

// otherKindsOnly says whether the new pods have only requests of kinds that few old requests are of, for example probes of
// the kubelet. The old pods may have had other kinds before the change, so their requests at the same time count, if they
// are not far fewer than before.
func (d Data) otherKindsOnly(newAll, oldAll counts, f frame) string {
	now, before := oldAll.within(0, f.last, nil).total(), oldAll.within(-f.before, -1, nil).total()
	if now >= defaultEvents && now*float64(f.before) >= 0.1*before*float64(f.last+1) {
		oldAll = oldAll.within(0, f.last, nil)
	}
	of, all := oldAll.of(newAll.withEvents()).total(), oldAll.total()
	if all < defaultEvents || of >= fewOfKinds*all {
		return ""
	}
	ofNew, ofOld := d.sides()
	return fmt.Sprintf("only %.0f of %.0f requests %s are of kinds of which there are requests %s", of, all, ofOld, ofNew)
}

// requestsRenamed reports whether the kinds of requests have other names in the new version. Rare kinds have other
// names at any time if the names contain ids, so the share of the frequent ones must also be at most half of that before.
func requestsRenamed(newAll, oldAll counts) bool {
	if overlapOf(newAll, oldAll) >= 0.5 {
		return false
	}
	frequent := oldAll.frequent()
	return overlapOf(newAll, frequent)*oldAll.total() <= 0.5*frequent.total()
}

// kindsContained reports whether all kinds of the events are also kinds of all requests.
func kindsContained(events, all counts) bool {
	for stratum := range events {
		if _, ok := all[stratum]; !ok {
			return false
		}
	}
	return true
}

// crossRatio compares events whose kinds differ from those of their denominator, for
// example outgoing calls per request. Each kind is tested separately, because a change of
// one kind may not change the sum. The mean of e-values is an e-value.
func crossRatio(d Data, s comparedCounts, f frame) outcome {
	s.newAll, s.oldAll, s.dayAll = s.newAll.pooled(), s.oldAll.pooled(), s.dayAll.pooled()
	if d.renamed(s.newEvents, s.oldEvents) {
		s = s.pooled()
	}
	common := s.commonEvents()
	mergeSmallKinds(s.oldEvents, s.newEvents, s.dayEvents, common.newEvents, common.oldEvents, common.dayEvents)
	worst, values := comparison{}, []float64{}
	compare := func(stratum string, newEvents, oldEvents, dayEvents counts, direction v1alpha1.Direction) {
		one := s
		one.newEvents, one.oldEvents = counts{"": newEvents[stratum]}, counts{"": oldEvents[stratum]}
		one.dayEvents = counts{"": dayEvents[stratum]}
		c := d.ifItMatters(one.compare(f, d.ReferenceBefore, false, direction), direction)
		if len(values) == 0 || c.logE > worst.logE {
			worst = c
		}
		values = append(values, c.logE)
	}
	for _, stratum := range samples.Sorted(s.oldEvents) {
		if stratum == rest && d.Signal == catalog.Outgoing && d.Direction == v1alpha1.DirectionEither {
			// The kinds that the old pods do not have are either added or, for example with ids, other names of
			// rare ones. So the kinds that both have show whether there are more, and these or all calls whether
			// some are missing.
			compare(rest, common.newEvents, s.oldEvents, s.dayEvents, v1alpha1.DirectionHigher)
			compare(rest, common.newEvents, common.oldEvents, common.dayEvents, v1alpha1.DirectionLower)
			compare(rest, s.newEvents, s.oldEvents, s.dayEvents, v1alpha1.DirectionLower)
			continue
		}
		compare(stratum, s.newEvents, s.oldEvents, s.dayEvents, d.Direction)
	}
	if len(values) == 0 {
		worst = s.compare(f, d.ReferenceBefore, false, d.Direction)
	} else {
		worst.logE = sequential.LogMean(values)
	}
	return d.outcome(d.exceptCallers(worst, s), s, f)
}

// ifItMatters returns the comparison, with an e-value of 0 if the change is too small to matter.
func (d Data) ifItMatters(c comparison, direction v1alpha1.Direction) comparison {
	if relative, absolute, _ := change(d.SmallestChange); !c.matters(relative, absolute, direction) {
		c.logE = math.Inf(-1)
	}
	return c
}

// commonEvents returns the events of the kinds that both the old and the new pods have.
func (s comparedCounts) commonEvents() comparedCounts {
	return comparedCounts{newEvents: s.newEvents.of(s.oldEvents), oldEvents: s.oldEvents.of(s.newEvents), dayEvents: s.dayEvents.of(s.newEvents)}
}

// renamed reports whether the kinds of events have other names in the new version. Calls that are only
// added are no other names: the new version still makes the old calls.
func (d Data) renamed(newEvents, oldEvents counts) bool {
	return overlapOf(newEvents, oldEvents) < 0.5 && (d.Signal != catalog.Outgoing || overlapOf(oldEvents, newEvents) < 0.5)
}

// outcome turns a comparison of counts into evidence.
func (d Data) outcome(c comparison, s comparedCounts, f frame) outcome {
	relative, absolute, _ := change(d.SmallestChange)
	compared := c.compared()
	value, oldValue := compared.rates()
	o := outcome{newSamples: s.newAll.total(), oldSamples: s.oldAll.total()}
	o.Reference = c.reference
	o.Dispersion = number(c.dispersion)
	o.New = &v1alpha1.Side{Value: number(value), Bad: number(compared.newEvents), Samples: int64(math.Round(compared.newAll)), Pods: s.newAll.pods()}
	o.Old = &v1alpha1.Side{Value: number(oldValue), Bad: number(compared.oldEvents), Samples: int64(math.Round(compared.oldAll)), Pods: s.oldAll.pods()}
	o.alsoBefore = c.alsoBefore
	o.Message = d.details(c)
	o.confidenceInterval = func(alpha float64) *v1alpha1.ConfidenceInterval {
		low, high := sequential.RatioInterval(c.blocks, c.dispersion, alpha)
		return &v1alpha1.ConfidenceInterval{Low: number(low), High: number(high), Of: "Factor"}
	}
	o.logE = c.logE
	if !c.matters(relative, absolute, d.Direction) {
		o.logE = math.Min(0, o.logE)
	}
	if s.newAll.total() == 0 && s.oldHadEvents(f) {
		o.reason, o.logE = v1alpha1.ReasonNoTraffic, 0
		bad, all := s.oldEvents.total(), s.oldAll.total()
		o.Old.Value, o.Old.Bad, o.Old.Samples = number(bad/all), number(bad), int64(math.Round(all))
		ofNew, ofOld := d.sides()
		o.message = fmt.Sprintf("there are %.0f events %s and none %s", s.oldAll.total(), ofOld, ofNew)
	}
	return o
}

// details says what the values of a comparison do not show.
func (d Data) details(c comparison) string {
	events := "events"
	switch d.Kind {
	case v1alpha1.KindRatio:
		events = "bad events"
	case v1alpha1.KindLatency:
		events = "slow requests"
	}
	ofNew, ofOld := d.sides()
	var out []string
	if c.alsoBefore && d.Kind != v1alpha1.KindLatency { // the values of a latency are no rates
		out = append(out, fmt.Sprintf("at the same time %s %s", readable(c.oldRateNow, d.Unit), ofOld))
	}
	if math.Round(c.leftOutNew+c.leftOutOld) > 0 {
		out = append(out, fmt.Sprintf("without disturbances with %.0f %s %s and %.0f %s", c.leftOutNew, events, ofNew, c.leftOutOld, ofOld))
	}
	if c.excepted {
		out = append(out, "not compared without old pods at the same time, because callers cause these requests")
	}
	return strings.Join(out, "; ")
}

// oldHadEvents reports whether the old pods had events in the compared time, also before the change.
func (s comparedCounts) oldHadEvents(f frame) bool {
	return s.oldAll.within(-f.before, f.last, nil).total() >= 1
}
