package judge

import (
	"strconv"
	"strings"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/evaluate"
)

// Sensitivity says how much evidence, and how large a change, a fail needs.
type Sensitivity struct {
	// MaxFalsePositiveRate replaces that of the check, if it is not empty.
	MaxFalsePositiveRate string
	// ChangeScale multiplies the smallest changes that matter.
	ChangeScale float64
}

// WithSensitivity returns the input with this sensitivity instead of its own.
func WithSensitivity(in evaluate.Input, s Sensitivity) evaluate.Input {
	if s.MaxFalsePositiveRate != "" {
		in.Check.MaxFalsePositiveRate = s.MaxFalsePositiveRate
	}
	metrics := make([]evaluate.Data, len(in.Metrics))
	for i, d := range in.Metrics {
		if c := d.SmallestChange; c != nil {
			d.SmallestChange = &v1alpha1.Change{Relative: scaled(c.Relative, s.ChangeScale), Absolute: scaled(c.Absolute, s.ChangeScale)}
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
