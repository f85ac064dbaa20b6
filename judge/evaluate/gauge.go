package evaluate

import (
	"fmt"
	"math"
	"strings"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/prometheus"
	"github.com/breakwater-dev/breakwater/judge/samples"
	"github.com/breakwater-dev/breakwater/judge/sequential"
)

// betweenFloor is the lowest relative standard deviation that is assumed between pods of
// the same version: the sample variance of few pods is often too low.
const betweenFloor = 0.08

// cellsForFail is the number of cells of a gauge that a fail needs: one cell may be one
// disturbance.
const cellsForFail = 2

// recent is the number of last cells whose mean is the level of a gauge.
const recent = 8

// podValues has the values of pods by cell.
type podValues map[string]samples.Cells

// isCounter reports whether a gauge's query selects a counter, whose rate is compared.
func isCounter(query string) bool {
	s, plain := prometheus.ParseSelector(strings.ReplaceAll(query, "{{pods}}", ""))
	return plain && strings.HasSuffix(s.Name, "_total")
}

func (d Data) podValues(series []samples.Series, f frame) podValues {
	if isCounter(d.Query) {
		// A second scrape of a process also doubles its requests, by which perRequest divides.
		return samples.Rates(series, f.grid)
	}
	if d.Signal == catalog.Resources {
		series = mergeExporters(series, processKey)
	}
	return samples.Values(series, f.grid)
}

// means returns the mean of the pods per cell, and the number of pods.
func (t podValues) means(first, last int, warm map[string]int) (samples.Cells, int32) {
	sum, n, pods := samples.Cells{}, samples.Cells{}, int32(0)
	for _, pod := range samples.Sorted(t) {
		used := false
		for c, v := range t[pod] {
			if start, ok := warm[pod]; c >= first && c <= last && (!ok || c >= start) {
				sum[c] += v
				n[c]++
				used = true
			}
		}
		if used {
			pods++
		}
	}
	for c := range sum {
		sum[c] /= n[c]
	}
	return sum, pods
}

// spans returns, for each pod, the time from the start of the first to the end of the last
// cell with samples.
func (t podValues) spans(f frame) map[string]samples.Span {
	out := map[string]samples.Span{}
	for pod, cells := range t {
		first, last := math.MaxInt32, math.MinInt32
		for c := range cells {
			first, last = min(first, c), max(last, c)
		}
		out[pod] = samples.Span{First: f.grid.Origin + float64(first)*f.grid.Width, Last: f.grid.Origin + float64(last+1)*f.grid.Width}
	}
	return out
}

func (t podValues) only(pods map[string]bool) podValues {
	out := podValues{}
	for pod, cells := range t {
		if pods[pod] {
			out[pod] = cells
		}
	}
	return out
}

// gauge compares the mean of a value of a pod.
func gauge(in Input, d Data, f frame) outcome {
	newT, oldT, dayT := d.podValues(d.New.All, f), d.podValues(d.Old.All, f), d.podValues(d.Day.All, f)
	warm := f.firstCells(d.New.All)
	if !isCounter(d.Query) {
		// A level is compared in the last cells, because a leak grows.
		for pod := range newT {
			warm[pod] = max(warm[pod], f.last+1-recent)
		}
	}
	g := d.difference(newT, oldT, f, warm, d.ReferenceBefore, betweenFloor)
	o := outcome{newSamples: g.newSamples, oldSamples: g.oldSamples}
	if g.newSamples == 0 || g.oldSamples == 0 {
		if g.oldSamples > 0 {
			o.reason, o.message = v1alpha1.ReasonInsufficientData, "the new pods have no samples"
		} else if g.newSamples > 0 {
			o.reason, o.message = v1alpha1.ReasonNoReference, "there are no samples to compare with"
		}
		return o
	}
	o.Reference = g.reference
	o.New = &v1alpha1.Side{Value: number(g.newMean), Samples: int64(g.newSamples), Pods: g.newPods}
	o.Old = &v1alpha1.Side{Value: number(g.oldMean), Samples: int64(g.oldSamples), Pods: g.oldPods}
	o.confidenceInterval = func(alpha float64) *v1alpha1.ConfidenceInterval {
		relative, _, _ := change(d.SmallestChange)
		half := sequential.MeanInterval(g.variance, g.scale(relative), alpha)
		return &v1alpha1.ConfidenceInterval{Low: number(g.diff - half), High: number(g.diff + half), Of: "Difference"}
	}
	if per, ok := d.perRequest(f, newT, oldT, dayT, warm, in.Nodes); ok {
		o.Message = per.message(d.Unit)
		relative, absolute, _ := change(d.SmallestChange)
		if levelMatters(g.newMean, g.oldMean, relative/2, absolute, d.Direction) {
			o.logE = per.logE
		}
	} else {
		o.logE = g.logE(d)
		if g.reference == v1alpha1.ReferenceBefore && len(dayT) > 0 {
			day := d.difference(newT, dayT.shift(f), f, warm, true, betweenFloor)
			if day.oldSamples >= 4 {
				o.logE = math.Min(o.logE, day.logE(d))
			}
		}
	}
	if o.logE > 0 && d.Sustained && !lasts(newT, g.oldMean, f, warm, d.Metric) {
		o.logE = 0
		o.Message = "the change has not lasted long enough yet"
	}
	if o.logE > 0 && len(in.Nodes) > 0 && !d.ReferenceBefore {
		if same, ok := onSharedNodes(in.Nodes, newT, oldT); ok {
			s := d.difference(newT.only(same), oldT.only(same), f, warm, false, betweenFloor)
			relative, absolute, _ := change(d.SmallestChange)
			if s.newSamples > 0 && s.oldSamples > 0 && s.reference == v1alpha1.ReferenceOldPods &&
				!levelMatters(s.newMean, s.oldMean, relative/2, absolute/2, d.Direction) {
				o.logE = 0
				o.Message = fmt.Sprintf("on nodes with new and old pods the values are alike (%s, %s)", readable(s.newMean, d.Unit), readable(s.oldMean, d.Unit))
			}
		}
	}
	return o
}

// lasting is the number of cells at the end in which a sustained change must exist. It is
// this large because connections that are idle after a disturbance keep their threads for
// about a minute.
const lasting = 6

// lasts reports whether the change exists in each of the last cells.
func lasts(newT podValues, oldMean float64, f frame, warm map[string]int, m catalog.Metric) bool {
	relative, absolute, _ := change(m.SmallestChange)
	means, _ := newT.means(f.last+1-lasting, f.last, warm)
	for _, v := range means {
		if !levelMatters(v, oldMean, relative, absolute, m.Direction) {
			return false
		}
	}
	return len(means) >= lasting
}

// shift moves the cells of the day before to the time before the change, where
// difference expects the values to compare with.
func (t podValues) shift(f frame) podValues {
	out := podValues{}
	for pod, values := range t {
		moved := samples.Cells{}
		for c, v := range values {
			if c >= 0 && c < f.before && c < f.cells {
				moved[c-f.before] = v
			}
		}
		out[pod] = moved
	}
	return out
}

// onSharedNodes returns the pods on nodes that have new and old pods.
func onSharedNodes(nodes map[string]string, newT, oldT podValues) (map[string]bool, bool) {
	has := map[string]int{}
	for pod := range newT {
		has[nodes[pod]] |= 1
	}
	for pod := range oldT {
		has[nodes[pod]] |= 2
	}
	out := map[string]bool{}
	for _, t := range []podValues{newT, oldT} {
		for pod := range t {
			if n := nodes[pod]; n != "" && has[n] == 3 {
				out[pod] = true
			}
		}
	}
	return out, len(out) > 0
}

// gaugeDifference is the difference of the means of new and old pods.
type gaugeDifference struct {
	diff, variance   float64
	newMean, oldMean float64
	// level is what relative deviations refer to: the mean of the old pods, or the difference if
	// that mean is nearZero.
	level                  float64
	nearZero               bool
	newSamples, oldSamples float64
	newPods, oldPods       int32
	reference              v1alpha1.Reference
}

// scale is the difference that the mixture tests for: about the smallest that matters.
func (g gaugeDifference) scale(relative float64) float64 {
	if relative <= 0 {
		relative = 0.3
	}
	if g.nearZero {
		return math.Max(g.level, 1e-9)
	}
	return math.Max(1.5*relative*g.level, 1e-9)
}

func (g gaugeDifference) logE(d Data) float64 {
	relative, absolute, _ := change(d.SmallestChange)
	if g.newSamples < cellsForFail {
		return 0
	}
	if !levelMatters(g.newMean, g.oldMean, relative, absolute, d.Direction) {
		return 0
	}
	scale := g.scale(relative)
	switch d.Direction {
	case v1alpha1.DirectionLower:
		return sequential.MeanHigher(-g.diff, g.variance, scale)
	case v1alpha1.DirectionEither:
		return sequential.LogMean([]float64{sequential.MeanHigher(g.diff, g.variance, scale), sequential.MeanHigher(-g.diff, g.variance, scale)})
	default:
		return sequential.MeanHigher(g.diff, g.variance, scale)
	}
}

// levelMatters reports whether a change of a level is in a bad direction and at least the smallest
// change that matters. Nothing is relative to a level of 0 or below.
func levelMatters(value, old, relative, absolute float64, direction v1alpha1.Direction) bool {
	if old > 0 {
		return matters(value, old, value/old, relative, absolute, direction)
	}
	switch diff := value - old; direction {
	case v1alpha1.DirectionLower:
		return -diff >= absolute && diff < 0
	case v1alpha1.DirectionEither:
		return math.Abs(diff) >= absolute && diff != 0
	default:
		return diff >= absolute && diff > 0
	}
}

// difference compares cell by cell with the old pods, or with the time before.
func (d Data) difference(newT, oldT podValues, f frame, warm map[string]int, referenceBefore bool, floor float64) gaugeDifference {
	var g gaugeDifference
	startedCells := f.startedCells(oldT.spans(f))
	newM, newPods := newT.means(0, f.last, warm)
	oldM, oldPods := oldT.means(0, f.last, startedCells)
	beforeM, beforePods := oldT.means(-f.before, -1, startedCells)
	var news, olds []float64
	if !referenceBefore {
		for c := 0; c <= f.last; c++ {
			n, okNew := newM[c]
			o, okOld := oldM[c]
			if okNew && okOld {
				news, olds = append(news, n), append(olds, o)
			}
		}
	}
	g.reference = v1alpha1.ReferenceOldPods
	g.newPods, g.oldPods = newPods, oldPods
	if 2*len(news) < len(newM) || referenceBefore {
		g.reference, g.oldPods = v1alpha1.ReferenceBefore, beforePods
		news, olds = values(newM, 0, f.last), values(beforeM, -f.before, -1)
	}
	g.newSamples, g.oldSamples = float64(len(news)), float64(len(olds))
	if len(news) == 0 || len(olds) == 0 {
		return g
	}
	g.newMean, g.oldMean = mean(news), mean(olds)
	g.diff = g.newMean - g.oldMean
	_, absolute, _ := change(d.SmallestChange)
	g.level, g.nearZero = math.Abs(g.oldMean), g.oldMean == 0 || 10*math.Abs(g.oldMean) < absolute
	if g.nearZero {
		g.level = math.Abs(g.diff)
	}
	// Without a change, new pods vary as old pods do. The series of the old pods is longer
	// and has no trend caused by a fault.
	past := values(oldM, 0, f.last)
	if referenceBefore {
		past = nil
	}
	past = append(values(beforeM, -f.before, -1), past...)
	over := sequential.LongRunVariance(past) * float64(len(past)) * (1/g.newSamples + 1/g.oldSamples)
	if g.nearZero {
		// The variation of a value near 0 says little about that of another one.
		over = math.Max(over, sequential.LongRunVariance(news)*g.newSamples*(1/g.newSamples+1/g.oldSamples))
	}
	between := square(floor * g.level)
	if v, n := podVariance(oldT, f); n >= 2 {
		// The variance of few pods is uncertain, so an upper estimate is used.
		between = math.Max(between, v*(1+2/math.Sqrt(float64(n))))
	}
	if referenceBefore {
		// The same pods before and after the change differ only by their drift over minutes.
		g.variance = over + between
	} else {
		g.variance = over + between*(1/float64(max(g.newPods, 1))+1/float64(max(g.oldPods, 1)))
	}
	return g
}

// podVariance returns the variance between the means of the old pods.
func podVariance(t podValues, f frame) (float64, int) {
	var means []float64
	for _, pod := range samples.Sorted(t) {
		if v := values(t[pod], -f.before, f.last); len(v) >= 4 {
			means = append(means, mean(v))
		}
	}
	return sequential.Variance(means), len(means)
}

func values(cells samples.Cells, first, last int) []float64 {
	var out []float64
	for c := first; c <= last; c++ {
		if v, ok := cells[c]; ok {
			out = append(out, v)
		}
	}
	return out
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func square(v float64) float64 { return v * v }
