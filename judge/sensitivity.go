package judge

import (
	"strconv"
	"strings"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/evaluate"
)

// Thresholds are the two thresholds of a fail.
type Thresholds struct {
	// MaxFalsePositiveRate replaces that of the check, if it is not empty.
	MaxFalsePositiveRate string
	// Scale multiplies the smallest changes that matter.
	Scale float64
}

// WithThresholds returns the input with these thresholds instead of its own.
func WithThresholds(in evaluate.Input, t Thresholds) evaluate.Input {
	if t.MaxFalsePositiveRate != "" {
		in.Check.MaxFalsePositiveRate = t.MaxFalsePositiveRate
	}
	metrics := make([]evaluate.Data, len(in.Metrics))
	for i, d := range in.Metrics {
		if c := d.SmallestChange; c != nil {
			d.SmallestChange = &v1alpha1.Change{Relative: scaled(c.Relative, t.Scale), Absolute: scaled(c.Absolute, t.Scale)}
		}
		metrics[i] = d
	}
	in.Metrics = metrics
	return in
}

func scaled(text string, by float64) string {
	number, isPercent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return text
	}
	out := strconv.FormatFloat(v*by, 'f', -1, 64)
	if isPercent {
		out += "%"
	}
	return out
}
