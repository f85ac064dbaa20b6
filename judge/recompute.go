package judge

import (
	"context"
	"fmt"
	"math"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/evaluate"
)

// Recompute evaluates the look of a record again, with the metrics as they are
// stored now.
func Recompute(ctx context.Context, reader Reader, check v1alpha1.MetricCheckSpec, record v1alpha1.Record) v1alpha1.Record {
	check = evaluate.Defaulted(check)
	if record.MaxFalsePositiveRate != "" {
		check.MaxFalsePositiveRate = record.MaxFalsePositiveRate
	}
	if record.SuccessTime != nil && record.ComparedSince != nil {
		previous := &v1alpha1.Record{Looks: record.Looks - 1, LookTime: *record.ComparedSince}
		return LookDuringProbation(ctx, reader, ProbationLook{
			Check: check, Target: record.Target, Success: record.SuccessTime.Time, End: record.EndTime.Time, Previous: previous,
		}, record.LookTime.Time)
	}
	if length := record.EndTime.Sub(record.Target.StartTime.Time); length > 0 {
		check.AnalysisDuration = metav1.Duration{Duration: length}
	}
	in := read(ctx, reader, check, record.Target, record.EndTime.Time)
	in.Now, in.End = record.LookTime.Time, record.EndTime.Time
	again := evaluate.Evaluate(in, nil)
	again.Looks = record.Looks
	return again
}

// Differences returns the differences between two records of one look, one per line.
func Differences(a, b v1alpha1.Record) []string {
	var out []string
	if a.Verdict != b.Verdict {
		out = append(out, fmt.Sprintf("verdict %s, recomputed %s", a.Verdict, b.Verdict))
	}
	byName := map[string]v1alpha1.Evidence{}
	for _, e := range b.Metrics {
		byName[e.Name] = e
	}
	for _, e := range a.Metrics {
		again, ok := byName[e.Name]
		switch {
		case !ok:
			out = append(out, e.Name+": not recomputed: no series were found, Prometheus could not be read, or --check is not the MetricCheck of the record")
		case e.Verdict != again.Verdict:
			out = append(out, fmt.Sprintf("%s: %s, recomputed %s", e.Name, e.Verdict, again.Verdict))
		case !alike(e.New, again.New):
			out = append(out, fmt.Sprintf("%s: new value %s, recomputed %s", e.Name, valueOf(e.New), valueOf(again.New)))
		case !alike(e.Old, again.Old):
			out = append(out, fmt.Sprintf("%s: old value %s, recomputed %s", e.Name, valueOf(e.Old), valueOf(again.Old)))
		}
	}
	return out
}

// valueOf returns the value for a message. A metric that could not be read has none.
func valueOf(s *v1alpha1.Side) string {
	if s == nil {
		return "none"
	}
	return s.Value
}

// alike reports whether two values differ by less than a thousandth.
func alike(a, b *v1alpha1.Side) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, errX := strconv.ParseFloat(a.Value, 64)
	y, errY := strconv.ParseFloat(b.Value, 64)
	return errX == nil && errY == nil && math.Abs(x-y) <= 1e-3*math.Max(math.Abs(x), math.Abs(y))
}
