// Package judge compares the metrics of new pods with those of old ones and
// returns a verdict. Look is one look at a running release, LookDuringProbation one at a
// release that has succeeded, Replay all looks at a past release, and Recompute repeats the
// look of a record. All read a few ranges and decide with package evaluate.
package judge

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/evaluate"
	"github.com/breakwater-dev/breakwater/judge/samples"
)

// Reader reads the samples of a PromQL expression after from, until to: the raw
// samples of a plain selector, or the value of any other expression at each step.
type Reader interface {
	Range(ctx context.Context, expression string, from, to time.Time, step time.Duration) ([]samples.Series, error)
}

// Look evaluates the metrics of a release for one of its batches, at time now. The analysis
// ends at until: spec.analysisDuration after the batch was created. Check has this duration, also if
// the MetricCheck was changed later. Previous is the record of
// the looks so far, nil before the first. If Prometheus cannot be read, the record has
// no verdict, never a pass.
func Look(ctx context.Context, reader Reader, check v1alpha1.MetricCheckSpec, target v1alpha1.Target,
	until time.Time, previous *v1alpha1.Record, now time.Time) v1alpha1.Record {
	check = evaluate.Defaulted(check)
	if previous != nil && previous.Final {
		return *previous
	}
	if now.After(until) {
		now = until
	}
	if since := comparedSince(target.StartTime.Time, until, now, check.AnalysisDuration.Duration); !since.Equal(target.StartTime.Time) {
		target.StartTime = metav1.NewTime(since)
		// The old pods may have ended long ago. The first pods of the release were compared with them.
		target.NoReferenceBefore = target.NoReferenceBefore && target.Old == ""
	}
	in := read(ctx, reader, check, target, now)
	in.Now, in.End = now, until
	return evaluate.Evaluate(in, previous)
}

// comparedSince returns the start of the compared time of a release that began at start. A slow release is
// compared only over the last duration before until, so that ranges are bounded. The start is not after now:
// until is rounded up.
func comparedSince(start, until, now time.Time, duration time.Duration) time.Time {
	if until.Sub(start) <= 2*duration {
		return start
	}
	if moved := until.Add(-duration); moved.Before(now) {
		return moved
	}
	return now
}

// Replay evaluates a past release as Look would have done, one look after another. The
// time of detection is only approximate, because the looks at a running release follow
// wake-ups.
func Replay(ctx context.Context, reader Reader, check v1alpha1.MetricCheckSpec, target v1alpha1.Target) v1alpha1.Record {
	return EvaluateLooks(Read(ctx, reader, check, target), LookInterval)
}

// LookInterval is the time between two looks of Replay. A running release is looked at every 10 to 20 seconds. The
// threshold of a fail does not depend on the number of looks.
const LookInterval = 15 * time.Second

// EvaluateLooks evaluates samples that were read for the whole analysis, once for each interval.
func EvaluateLooks(in evaluate.Input, interval time.Duration) v1alpha1.Record {
	end := in.End
	var record *v1alpha1.Record
	for now := in.Target.StartTime.Add(interval); ; now = now.Add(interval) {
		if now.After(end) {
			now = end
		}
		in.Now = now
		r := evaluate.Evaluate(in, record)
		record = &r
		if r.Final || !now.Before(end) {
			return r
		}
	}
}

// Read returns the samples that Replay decides on.
func Read(ctx context.Context, reader Reader, check v1alpha1.MetricCheckSpec, target v1alpha1.Target) evaluate.Input {
	check = evaluate.Defaulted(check)
	end := target.StartTime.Add(check.AnalysisDuration.Duration)
	in := read(ctx, reader, check, target, end)
	in.End = end
	return in
}
