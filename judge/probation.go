package judge

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/catalog"
	"github.com/breakwater-dev/breakwater/judge/evaluate"
	"github.com/breakwater-dev/breakwater/judge/prometheus"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

const (
	// MaxProbationWindow is the longest time of which one look during probation compares the shares of bad events.
	// Restarts and OOM kills are compared since the success.
	MaxProbationWindow = time.Hour
	// healthSamples is the maximum number of samples of a series of health. Its range is the
	// whole probation, and at the interval of the scrapes a query of many pods would exceed the
	// limits of Prometheus.
	healthSamples = 240
)

// ProbationLook is a look at a release that has succeeded.
type ProbationLook struct {
	Check v1alpha1.MetricCheckSpec
	// Target has the pods, and the start of the release.
	Target v1alpha1.Target
	// Success is the time of the success, and End the end of the probation.
	Success, End time.Time
	// Previous is the record of the looks so far, nil before the first.
	Previous *v1alpha1.Record
}

// LookDuringProbation looks at a release that has succeeded: at the shares of bad events (kind Ratio) since the previous
// look, and at the restarts and OOM kills since the success. Rejected requests, metrics with causedByCallers, and requests
// that callers count are left out. There are no old pods any more, so the reference is the time before the release. Other
// metrics change with the time of day or the load, and are not compared.
func LookDuringProbation(ctx context.Context, reader Reader, l ProbationLook, now time.Time) v1alpha1.Record {
	if l.Previous != nil && l.Previous.Final {
		return *l.Previous
	}
	if now.After(l.End) {
		now = l.End
	}
	look, from := int32(1), l.Success
	if l.Previous != nil {
		look, from = l.Previous.Looks+1, l.Previous.LookTime.Time
	}
	if earliest := now.Add(-MaxProbationWindow); from.Before(earliest) {
		from = earliest
	}
	l.Check = evaluate.Defaulted(l.Check)
	in := readDuringProbation(ctx, reader, l, from, now)
	in.Now, in.End = now, now
	in.Probation = &evaluate.Probation{Start: l.Target.StartTime.Time, Success: l.Success, Look: look}
	r := evaluate.Evaluate(in, nil)
	r.Target, r.Looks, r.EndTime = l.Target, look, metav1.NewTime(l.End)
	r.SuccessTime, r.ComparedSince = &metav1.Time{Time: l.Success}, &metav1.Time{Time: from}
	r.Final = r.Verdict == v1alpha1.VerdictFail || !now.Before(l.End)
	return r
}

// readDuringProbation returns the samples that a look during probation depends on.
func readDuringProbation(ctx context.Context, reader Reader, l ProbationLook, from, to time.Time) evaluate.Input {
	target := l.Target
	target.StartTime = metav1.NewTime(from)
	in := evaluate.Input{Check: l.Check, Target: target}
	s, err := newSource(reader, target, to)
	if err != nil {
		in.Err = err
		return in
	}
	metrics, err := s.metrics(ctx, l.Check)
	if err != nil {
		in.Err = err
		return in
	}
	var compared []catalog.Metric
	for _, m := range metrics {
		if comparedDuringProbation(m) {
			compared = append(compared, m)
		}
	}
	in.Metrics = readEach(ctx, compared, func(ctx context.Context, m catalog.Metric) evaluate.Data { return s.duringProbation(ctx, l, m) })
	return in
}

// comparedDuringProbation reports whether a metric is compared during probation.
func comparedDuringProbation(m catalog.Metric) bool {
	switch m.Signal {
	case catalog.Health:
		return true
	case catalog.Errors, catalog.Custom:
		return m.Kind == v1alpha1.KindRatio && !m.CausedByCallers
	default:
		return false
	}
}

// duringProbation reads one metric since the previous look, in the minutes before the release, and at the
// same time of the last day before the release. It reads the metric of health since the success.
func (s source) duringProbation(ctx context.Context, l ProbationLook, m catalog.Metric) evaluate.Data {
	old, start := s.old, l.Target.StartTime.Time
	if s.referenceBefore {
		old = s.new
	}
	d := evaluate.Data{Metric: m, ReferenceBefore: true,
		NewQuery: strings.ReplaceAll(m.Query, placeholder, s.new.String()), OldQuery: strings.ReplaceAll(m.Query, placeholder, old.String())}
	if m.Signal == catalog.Health {
		length := s.to.Sub(l.Success)
		if d.New.All, d.Err = s.coarse(ctx, m, s.new, s.to, length); d.Err == nil {
			d.Old.All, d.Err = s.coarse(ctx, m, old, start, length)
		}
		return d
	}
	from := s.target.StartTime.Time
	if d.New, d.Err = s.moved(ctx, m, s.new, s.from, s.to, 0); d.Err != nil {
		return d
	}
	if d.Old, d.Err = s.moved(ctx, m, old, s.from, from, from.Sub(start)); d.Err != nil {
		return d
	}
	days := s.to.Sub(start)/evaluate.DailyOffset + 1
	d.Day, d.Err = s.moved(ctx, m, old, from.Add(-evaluate.DailyLead), s.to, days*evaluate.DailyOffset)
	return d
}

// coarse reads the series of a metric with at most healthSamples samples each. An expression
// that is no plain selector is read at each step.
func (s source) coarse(ctx context.Context, m catalog.Metric, pods prometheus.Matchers, to time.Time, length time.Duration) ([]samples.Series, error) {
	every := max(step, (length / healthSamples).Round(step))
	return s.reader.Range(ctx, "("+strings.ReplaceAll(m.Query, placeholder, pods.String())+")", to.Add(-length-2*every), to, every)
}
