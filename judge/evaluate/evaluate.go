package evaluate

import (
	"fmt"
	"math"
	"sort"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// maxQuery is the maximum length of a query that a record contains with the names of
// pods. A longer query has {{pods}} instead: the matchers are in the target.
const maxQuery = 512

// Evaluate evaluates the metrics until in.Now and returns the record of this look.
// Previous is the record so far, nil at the first look. A fail in it is kept.
func Evaluate(in Input, previous *v1alpha1.Record) v1alpha1.Record {
	if previous != nil && (previous.Final || previous.Verdict == v1alpha1.VerdictFail) {
		return *previous
	}
	r := v1alpha1.Record{
		Verdict: v1alpha1.VerdictNone, Reason: v1alpha1.ReasonAnalysisRunning, Target: in.Target, Looks: 1,
		MaxFalsePositiveRate: in.Check.MaxFalsePositiveRate, LookTime: metav1.NewTime(in.Now), EndTime: metav1.NewTime(in.End),
	}
	if previous != nil {
		r.Looks = previous.Looks + 1
	}
	atEnd := !in.Now.Before(r.EndTime.Time)
	if in.Err != nil {
		r.Reason, r.Message, r.Final = v1alpha1.ReasonMetricsUnavailable, bounded(in.Err.Error()), atEnd
		return r
	}
	threshold := thresholdOf(in)
	signals := map[string]catalog.Signal{}
	for _, d := range in.Metrics {
		signals[d.Name] = d.Signal
		r.Metrics = append(r.Metrics, evidenceOf(in, d, threshold))
	}
	fails, alone := 0, false
	for _, e := range r.Metrics {
		if e.Verdict == v1alpha1.VerdictFail {
			fails++
			alone = alone || e.Weight != v1alpha1.WeightWithOthers
		}
	}
	rank := map[v1alpha1.Verdict]int{v1alpha1.VerdictFail: 0, v1alpha1.VerdictNone: 1, v1alpha1.VerdictPass: 2}
	sort.SliceStable(r.Metrics, func(i, j int) bool { return rank[r.Metrics[i].Verdict] < rank[r.Metrics[j].Verdict] })
	if alone || fails > 1 {
		first := r.Metrics[0]
		for _, e := range r.Metrics {
			if e.Verdict == v1alpha1.VerdictFail && e.Weight != v1alpha1.WeightWithOthers {
				first = e
				break
			}
		}
		r.Verdict, r.Reason, r.Message, r.Final = v1alpha1.VerdictFail, first.Reason, bounded(first.Name+": "+first.Message), true
		r.DetectionTime = &r.LookTime
		return r
	}
	if atEnd {
		r.Final = true
		r.Verdict, r.Reason, r.Message = conclude(r.Metrics, signals, in.Probation != nil)
	}
	return r
}

// thresholdOf returns the e-value at which a metric fails, so that all metrics together
// have at most the stated rate of false positives.
func thresholdOf(in Input) float64 {
	alpha, err := percent(in.Check.MaxFalsePositiveRate)
	if err != nil || alpha <= 0 {
		alpha = 0.01
	}
	n := 0
	for _, d := range in.Metrics {
		if d.Signal != catalog.Health {
			n++
		}
	}
	return float64(max(1, n)) / alpha * in.Probation.factor()
}

// evidenceOf compares one metric of new and old pods.
func evidenceOf(in Input, d Data, threshold float64) v1alpha1.Evidence {
	e := v1alpha1.Evidence{Verdict: v1alpha1.VerdictNone}
	if d.ofNewPodsBefore(in.Target) {
		d.Old, d.Day = Pair{}, Pair{}
	}
	compared := comparedData(in, d)
	var o outcome
	switch {
	case d.Err != nil:
		o = outcome{reason: v1alpha1.ReasonMetricsUnavailable, message: d.Err.Error()}
	case in.Probation != nil && d.Signal == catalog.Health:
		o = probationHealth(in, d)
		e = o.Evidence
	default:
		o = compareMetric(in, compared)
		e = o.Evidence
	}
	if d.MissingLabel != "" {
		e.Message = strings.TrimPrefix(e.Message+"; no series of query has label "+d.MissingLabel, "; ")
	}
	e.Name, e.Kind, e.Weight, e.Unit, e.SmallestChange = d.Name, d.Kind, d.Weight, d.Unit, d.SmallestChange
	if d.Signal != catalog.Health {
		e.EValue, e.Threshold = number(math.Exp(math.Min(o.logE, 600))), number(threshold)
	}
	describeRange(in, d, o.alsoBefore, &e)
	minimum := minimumOf(d)
	switch {
	case o.reason == v1alpha1.ReasonPodsUnhealthy:
		e.Verdict, e.Reason, e.Message = v1alpha1.VerdictFail, o.reason, o.message
	case o.reason == v1alpha1.ReasonNoTraffic && o.logE >= math.Log(threshold):
		e.Verdict, e.Reason, e.Message = v1alpha1.VerdictFail, v1alpha1.ReasonPodsWithoutRequests, o.message
	case o.reason != "":
		e.Verdict, e.Reason, e.Message = v1alpha1.VerdictNone, o.reason, o.message
	case d.Signal != catalog.Health && o.logE >= math.Log(threshold):
		e.Verdict, e.Reason = v1alpha1.VerdictFail, v1alpha1.ReasonMetricWorse
		e.Message = summary(e, compared, o.quantile)
	case o.newSamples < minimum || o.oldSamples < minimum:
		e.Verdict, e.Reason = v1alpha1.VerdictNone, v1alpha1.ReasonInsufficientData
		e.Message = tooLittleData(compared, o.newSamples, o.oldSamples, minimum)
	case seriesEnded(in, d):
		e.Verdict, e.Reason, e.Message = v1alpha1.VerdictNone, v1alpha1.ReasonInsufficientData, "the series of the new pods have ended"
	case e.Weight != v1alpha1.WeightWithOthers && o.logE >= math.Log(inconclusive):
		e.Verdict, e.Reason = v1alpha1.VerdictNone, v1alpha1.ReasonInconclusive
		e.Message = "probably worse, but not proven: " + summary(e, compared, o.quantile)
	case o.noPass != "":
		e.Verdict, e.Reason, e.Message = v1alpha1.VerdictNone, v1alpha1.ReasonInsufficientData, o.noPass
	default:
		e.Verdict, e.Reason = v1alpha1.VerdictPass, v1alpha1.ReasonNoChange
		e.Message = summary(e, compared, o.quantile)
	}
	if o.confidenceInterval != nil && (e.Verdict == v1alpha1.VerdictFail || !in.Now.Before(in.End)) {
		e.ConfidenceInterval = o.confidenceInterval(1 / threshold)
	}
	e.Message = bounded(e.Message)
	return e
}

func compareMetric(in Input, d Data) outcome {
	f := newFrame(in, d)
	switch {
	case d.Signal == catalog.Health:
		return health(in, d, f)
	case d.Kind == v1alpha1.KindRatio:
		return reach(in, d, f, ratio(d, f))
	case d.Kind == v1alpha1.KindLatency:
		return latency(d, f)
	case d.Kind == v1alpha1.KindGauge:
		return gauge(in, d, f)
	default:
		return counter(d, f)
	}
}

// comparedData returns d without the samples after the time of the look. If there are no series of
// old pods, and the name of a new pod has samples from long enough before the change, the new samples
// are compared with the earlier samples of the same names: of the same pods, or of earlier pods with
// these names. Long after the start of the release, during probation, the pods themselves are always a reference.
func comparedData(in Input, d Data) Data {
	now := seconds(in.Now)
	d.New = Pair{samples.Until(d.New.All, now), samples.Until(d.New.Bad, now)}
	d.Old = Pair{samples.Until(d.Old.All, now), samples.Until(d.Old.Bad, now)}
	at := seconds(in.Target.StartTime.Time)
	namesBefore := !in.Target.NoReferenceBefore || in.Probation != nil
	for _, span := range samples.Spans(d.New.All) {
		if namesBefore && len(d.Old.All) == 0 && span.First < at-ReferenceDuration.Seconds()/2 {
			d.Old, d.ReferenceBefore = d.New, true
		}
	}
	if d.ReferenceBefore {
		d.Old.All, _ = samples.Split(d.Old.All, newSince(in.Target))
		d.Old.Bad, _ = samples.Split(d.Old.Bad, newSince(in.Target))
	}
	return d
}

// seriesEnded reports whether all new pods stopped sending samples before the time of the look.
func seriesEnded(in Input, d Data) bool {
	step := math.Max(samples.Step(d.New.All), minimumCell)
	return seconds(in.Now)-lastOf(samples.Until(d.New.All, seconds(in.Now))) > math.Max(90, 4*step)
}

// tooLittleData says what is missing: traffic for a ratio or a latency, time for other metrics.
func tooLittleData(d Data, news, olds, minimum float64) string {
	if d.Signal == catalog.Health {
		return "the state of the new pods has no samples"
	}
	what := "cells with samples"
	switch d.Kind {
	case v1alpha1.KindRatio:
		what = "events"
	case v1alpha1.KindLatency:
		what = "requests"
	}
	ofNew, ofOld := d.sides()
	return fmt.Sprintf("there are %.0f %s %s and %.0f %s; %.0f of each are needed", news, what, ofNew, olds, ofOld, minimum)
}

func minimumOf(d Data) float64 {
	if d.MinimumData != nil {
		return float64(*d.MinimumData)
	}
	if d.Kind == v1alpha1.KindRatio || d.Kind == v1alpha1.KindLatency {
		return defaultEvents
	}
	return defaultSamples
}

func describeRange(in Input, d Data, alsoBefore bool, e *v1alpha1.Evidence) {
	at := in.Target.StartTime
	newQuery, oldQuery := d.NewQuery, d.OldQuery
	if len(newQuery) > maxQuery || len(oldQuery) > maxQuery {
		newQuery, oldQuery = d.Query, d.Query
	}
	if e.New != nil {
		e.New.Query, e.New.From, e.New.To = newQuery, at, metav1.NewTime(in.Now)
	}
	if e.Old != nil {
		e.Old.Query, e.Old.From, e.Old.To = oldQuery, at, metav1.NewTime(in.Now)
		if alsoBefore {
			e.Old.From = metav1.NewTime(at.Add(-ReferenceDuration))
		}
		if e.Reference != v1alpha1.ReferenceOldPods {
			e.Old.From, e.Old.To = metav1.NewTime(at.Add(-ReferenceDuration)), at
		}
		if d.Signal == catalog.Health {
			e.Old.To = metav1.NewTime(in.Now)
		}
	}
	in.Probation.describeRange(in, d, e)
}

// summary says what was compared.
func summary(e v1alpha1.Evidence, d Data, quantile string) string {
	if e.New == nil || e.Old == nil {
		return ""
	}
	ofNew, ofOld := d.sides()
	text := fmt.Sprintf("%s %s against %s %s", readableText(e.New.Value, e.Unit), ofNew, readableText(e.Old.Value, e.Unit), ofOld)
	if quantile != "" {
		text = quantile + ": " + text
	}
	if e.Message != "" {
		text += "; " + e.Message
	}
	return text
}

// conclude decides at the end of the analysis, or at a look during probation, when no metric
// failed the release.
func conclude(metrics []v1alpha1.Evidence, signals map[string]catalog.Signal, probation bool) (v1alpha1.Verdict, string, string) {
	noSeries := "no known metric has series of the new pods"
	noProof := "no series of requests of these pods is known, and CPU, memory and health alone are no proof; name a metric in spec.metrics"
	if probation { // few metrics are compared: see judge.LookDuringProbation
		noSeries = "no metric that is compared after the success of a release has series of the new pods"
		noProof = "no series of failed requests of these pods is known, and health alone is no proof; name a metric of kind Ratio without causedByCallers in spec.metrics"
	}
	if len(metrics) == 0 {
		return v1alpha1.VerdictNone, v1alpha1.ReasonNoSeries, noSeries
	}
	passed, present := map[catalog.Signal]int{}, map[catalog.Signal]int{}
	var missing, undecided *v1alpha1.Evidence
	for i, e := range metrics {
		s := signals[e.Name]
		present[s]++
		if e.Verdict == v1alpha1.VerdictPass {
			passed[s]++
		}
		// A failed query may hide a fail, an inconclusive metric may be one, and each metric of the
		// MetricCheck is required. The failed query is the reason, because it is sent again.
		unread := e.Reason == v1alpha1.ReasonMetricsUnavailable
		if e.Verdict == v1alpha1.VerdictNone && (unread || undecided == nil && (e.Reason == v1alpha1.ReasonInconclusive || s == catalog.Custom)) {
			undecided = &metrics[i]
		}
		if e.Verdict == v1alpha1.VerdictNone && (s == catalog.Errors || s == catalog.Latency) &&
			(missing == nil || e.Reason == v1alpha1.ReasonNoTraffic || missing.Reason != v1alpha1.ReasonNoTraffic && s == catalog.Errors) {
			missing = &metrics[i]
		}
	}
	if undecided != nil {
		return v1alpha1.VerdictNone, undecided.Reason, bounded(undecided.Name + ": " + undecided.Message)
	}
	traffic := present[catalog.Errors]+present[catalog.Latency] > 0
	enough := passed[catalog.Errors] > 0 || present[catalog.Errors] == 0 && passed[catalog.Latency] > 0
	if traffic && !enough {
		if missing == nil {
			return v1alpha1.VerdictNone, v1alpha1.ReasonInsufficientData, "no metric of requests has enough data"
		}
		return v1alpha1.VerdictNone, missing.Reason, bounded(missing.Name + ": " + missing.Message)
	}
	// A pod without requests is healthy and needs little CPU, whatever its version does. So
	// these metrics are no proof, unless the MetricCheck names a metric of its own.
	if !traffic && passed[catalog.Custom] == 0 {
		return v1alpha1.VerdictNone, v1alpha1.ReasonInsufficientData, noProof
	}
	for _, e := range metrics {
		if e.Verdict == v1alpha1.VerdictFail {
			return v1alpha1.VerdictPass, v1alpha1.ReasonNoChange, e.Name + " of the new pods is worse, but does not fail the release alone (weight WithOthers)"
		}
	}
	return v1alpha1.VerdictPass, v1alpha1.ReasonNoChange, "no metric of the new pods is worse"
}

func bounded(text string) string {
	const limit = 1000
	if len(text) > limit {
		return strings.ToValidUTF8(text[:limit], "") + "…"
	}
	return text
}

// Defaulted returns the check with the defaults that the API server sets, so that
// a file gives the same check as the object.
func Defaulted(check v1alpha1.MetricCheckSpec) v1alpha1.MetricCheckSpec {
	if check.DefaultMetrics == "" {
		check.DefaultMetrics = v1alpha1.Discover
	}
	if check.Callers == "" {
		check.Callers = v1alpha1.Discover
	}
	if check.AnalysisDuration.Duration == 0 {
		check.AnalysisDuration.Duration = 5 * time.Minute
	}
	if check.WarmUp == nil {
		check.WarmUp = &metav1.Duration{Duration: 30 * time.Second}
	}
	if check.InsufficientDataPolicy == "" {
		check.InsufficientDataPolicy = v1alpha1.InsufficientDataHold
	}
	if check.MaxFalsePositiveRate == "" {
		check.MaxFalsePositiveRate = "1%"
	}
	metrics := make([]v1alpha1.Metric, len(check.Metrics))
	for i, m := range check.Metrics {
		if m.Direction == "" {
			m.Direction = v1alpha1.DirectionHigher
		}
		if m.Weight == "" {
			m.Weight = v1alpha1.WeightAlone
		}
		metrics[i] = m
	}
	check.Metrics = metrics
	return check
}
