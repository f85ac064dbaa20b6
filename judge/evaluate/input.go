// Package evaluate decides on the samples of new and old pods. Evaluate is a pure
// function: a verdict can be recomputed from the samples, the record and the MetricCheck.
//
// Time is divided into cells. Each cell of the new pods is compared with the same
// cell of the old pods or, where these have ended, with cells before the change,
// and then with the same cells of the day before as well.
package evaluate

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

const (
	// ReferenceDuration is the length of the time before the change that is compared.
	ReferenceDuration = 10 * time.Minute
	// DailyOffset is the time between a cell and the same cell of the day before.
	DailyOffset = 24 * time.Hour
	// DailyLead is how long before the compared time the samples of the day before begin.
	DailyLead = time.Minute
	// minimumCell is the shortest cell.
	minimumCell = 15.0

	// startupSeconds is the time after the start of an old pod that is not compared.
	startupSeconds = 60

	// inconclusive is the e-value from which a metric is no pass. In a release without a change a
	// metric reaches it with a probability of at most 1/inconclusive, and much less in simulations.
	inconclusive = 5

	// defaultEvents suffice to find a share of 30 % bad events.
	defaultEvents  = 15
	defaultSamples = 8
)

// Pair has the series of all events (or of the value), and the series of the bad events.
type Pair struct{ All, Bad []samples.Series }

// Data has the series of one metric. The times of the series of the day before are moved
// by a day.
type Data struct {
	catalog.Metric
	New, Old, Day Pair
	// Requests has the series of the requests of the pods, if the metric is also compared per
	// request and these are known.
	Requests struct{ New, Old, Day []samples.Series }
	// NewQuery and OldQuery are the expressions that were read.
	NewQuery, OldQuery string
	// ReferenceBefore is true if the reference is only the time before the change: no other pods
	// are known that ran at the same time, or the release is on probation. The pods of the
	// reference may be the same, or others.
	ReferenceBefore bool
	// MissingLabel is a label that bad events must have, and that no series of the query has. "" if each label exists.
	MissingLabel string
	// Err is why the series could not be read.
	Err error
}

// sides returns the words of messages for what is compared and for its reference.
func (d Data) sides() (compared, reference string) {
	if d.ReferenceBefore {
		return "now", "before"
	}
	return "of new pods", "of old pods"
}

// ofNewPodsBefore reports whether the reference is what the new pods did before the change, although this is none. What
// the callers of the service count is another one: it can fail a release, and never passes it.
func (d Data) ofNewPodsBefore(t v1alpha1.Target) bool {
	return t.NoReferenceBefore && t.Old == "" && d.ReferenceBefore && d.Signal != catalog.Callers
}

// lastOld returns the last cell of the reference.
func (d Data) lastOld(f frame) int {
	if d.ReferenceBefore {
		return -1
	}
	return f.last
}

// Input is everything that a verdict depends on.
type Input struct {
	Check  v1alpha1.MetricCheckSpec
	Target v1alpha1.Target
	// Metrics are the metrics to compare, with their series until now or later.
	Metrics []Data
	// Nodes maps pods to their nodes, where these are known.
	Nodes map[string]string
	// Now is the time of the look: later samples are not used.
	Now time.Time
	// End is the end of the analysis.
	End time.Time
	// Probation is set if the release has succeeded before.
	Probation *Probation
	// Err is why no series could be read.
	Err error
}

// frame says how the time of one metric is divided into cells at one look.
type frame struct {
	grid samples.Grid
	step float64
	// last is the last complete cell, cells the number of cells of the whole analysis,
	// and before the number of cells before the change.
	last, cells, before int
	// oldEnd is the last cell of the analysis in which the old pods are compared, -1 if they ended
	// before the change.
	oldEnd int
	warmUp float64
	// newSince has, by the name of a new pod, since when its samples count as new.
	newSince map[string]float64
}

func newFrame(in Input, d Data) frame {
	step := samples.Step(d.New.All)
	if s := samples.Step(d.Old.All); s > step {
		step = s
	}
	at := seconds(in.Target.StartTime.Time)
	width := math.Max(minimumCell, step)
	f := frame{grid: samples.Grid{Origin: at, Width: width}, step: step}
	f.last = int(math.Floor((seconds(in.Now)-at)/width)) - 1
	f.cells = max(1, int(in.End.Sub(in.Target.StartTime.Time).Seconds()/width))
	if f.last >= f.cells {
		f.last = f.cells - 1
	}
	f.before = int(ReferenceDuration.Seconds() / width)
	f.oldEnd = f.last
	if end := lastOf(d.Old.All); seconds(in.Now)-end > 1.5*math.Max(step, 10) {
		f.oldEnd = max(-1, min(f.last, f.grid.Cell(end)-1))
	}
	if d.WarmUp && in.Check.WarmUp != nil {
		f.warmUp = in.Check.WarmUp.Seconds()
	}
	f.newSince = newSince(in.Target)
	return f
}

// readSince returns the start of the range of the samples of both sides.
func (f frame) readSince() float64 { return f.grid.Origin - ReferenceDuration.Seconds() }

// dayReadSince returns the start of the range of the samples of the day before.
func (f frame) dayReadSince() float64 { return f.grid.Origin - DailyLead.Seconds() }

func newSince(t v1alpha1.Target) map[string]float64 {
	out := map[string]float64{}
	for pod, since := range t.NewSince {
		out[pod] = seconds(since.Time)
	}
	return out
}

// firstCells returns the first cell of each new pod that is compared. The cells until the start of a
// new pod are those of an earlier pod of the same name.
func (f frame) firstCells(news []samples.Series) map[string]int {
	out := map[string]int{}
	for pod := range f.newSince {
		out[pod] = f.last + 1 // until the pod has a sample
	}
	_, news = samples.Split(news, f.newSince)
	for pod, span := range samples.Spans(news) {
		out[pod] = f.warm(span)
		if since, known := f.newSince[pod]; known {
			out[pod] = max(out[pod], f.grid.Cell(since)+1)
		}
	}
	return out
}

// warm returns the first cell after the warm-up of a pod.
func (f frame) warm(span samples.Span) int {
	if f.warmUp == 0 || span.First < f.grid.Origin-ReferenceDuration.Seconds()+2*f.grid.Width {
		return 0
	}
	return max(0, f.grid.Cell(span.First+f.warmUp)+1)
}

// startedCells returns the first cell of each old pod that is compared: the start of a pod
// is not representative of its later behaviour.
func (f frame) startedCells(spans map[string]samples.Span) map[string]int {
	out := map[string]int{}
	for pod, span := range spans {
		out[pod] = -f.before
		if span.First > f.grid.Origin-ReferenceDuration.Seconds()+2*f.grid.Width {
			out[pod] = f.grid.Cell(span.First+startupSeconds) + 1
		}
	}
	return out
}

// lastOf returns the time of the last sample.
func lastOf(series []samples.Series) float64 {
	last := 0.0
	for _, span := range samples.Spans(series) {
		last = math.Max(last, span.Last)
	}
	return last
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func number(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

// change returns the smallest change that matters as numbers: a factor minus 1,
// and a difference.
func change(c *v1alpha1.Change) (relative, absolute float64, err error) {
	if c == nil {
		return 0, 0, nil
	}
	if c.Relative != "" {
		if relative, err = percent(c.Relative); err != nil {
			return 0, 0, fmt.Errorf("smallestChange.relative %q: want a percentage, for example 50%%", c.Relative)
		}
	}
	if c.Absolute != "" {
		if absolute, err = strconv.ParseFloat(c.Absolute, 64); err != nil || absolute < 0 {
			return 0, 0, fmt.Errorf("smallestChange.absolute %q: want a number that is not negative", c.Absolute)
		}
	}
	return relative, absolute, nil
}

func percent(text string) (float64, error) {
	number, ok := strings.CutSuffix(text, "%")
	if !ok {
		return 0, fmt.Errorf("%q has no %%", text)
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || v < 0 {
		return 0, fmt.Errorf("%q is not a percentage", text)
	}
	return v / 100, nil
}
