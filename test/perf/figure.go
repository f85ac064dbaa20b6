package perf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// goal is the limit of a figure.
type goal struct {
	Limit float64
	// AtLeast: the limit is a minimum, not a maximum.
	AtLeast bool `json:",omitempty"`
}

func atMost(limit float64) goal  { return goal{Limit: limit} }
func atLeast(limit float64) goal { return goal{Limit: limit, AtLeast: true} }

// met reports whether a value is within the limit.
func (g goal) met(value float64) bool {
	if g.AtLeast {
		return value >= g.Limit
	}
	return value <= g.Limit
}

// figure is a measured value with a goal, or one from which the cost of a cluster is computed.
type figure struct {
	// Work is the unit of work: a released pod, a guarded deletion, a start.
	Work string
	// Measure is unique among the figures of a section.
	Measure string
	Value   float64
	// Unit follows the value, for example "×" or "ms".
	Unit string `json:",omitempty"`
	// Goal is nil if the figure has none.
	Goal *goal `json:",omitempty"`
}

// figures are those of each section, as they were last measured.
type figures map[string][]figure

// value returns the value of a measure, and whether it was measured.
func (f figures) value(section, measure string) (float64, bool) {
	i := slices.IndexFunc(f[section], func(x figure) bool { return x.Measure == measure })
	if i < 0 {
		return 0, false
	}
	return f[section][i].Value, true
}

// markdown renders the figures that have a goal, and counts those that meet it.
func (f figures) markdown() string {
	var rows strings.Builder
	all, met := 0, 0
	for _, section := range measuredSections {
		for _, x := range f[section] {
			if x.Goal == nil {
				continue
			}
			all++
			result := "**missed**"
			if x.Goal.met(x.Value) {
				met++
				result = "met"
			}
			sign := "≤"
			if x.Goal.AtLeast {
				sign = "≥"
			}
			fmt.Fprintf(&rows, "| %s | %s | %s | %s %s | %s |\n", x.Work, x.Measure, x.with(x.Value), sign, x.with(x.Goal.Limit), result)
		}
	}
	missing := ""
	if left := slices.DeleteFunc(slices.Clone(measuredSections), func(section string) bool { return len(f[section]) > 0 }); len(left) > 0 {
		missing = " Not measured against these goals yet: " + strings.Join(left, "; ") + "." +
			" The figures of these sections are older than the goals, and a column `target` in them has an earlier target."
	}
	return fmt.Sprintf("%d of %d measured goals are met.%s\n\n| work | measure | measured | goal | |\n|---|---|---|---|---|\n%s", met, all, missing, rows.String())
}

// with renders a value with the unit of the figure, with three digits at least.
func (x figure) with(value float64) string {
	var number string
	switch {
	case value == float64(int64(value)) || value >= 100 || value <= -100:
		number = fmt.Sprintf("%.0f", value)
	case value >= 10 || value <= -10:
		number = fmt.Sprintf("%.1f", value)
	default:
		number = fmt.Sprintf("%.2f", value)
	}
	return strings.TrimSpace(number + " " + x.Unit)
}

// readFigures reads the figures of earlier measurements.
func readFigures(path string) (figures, error) {
	out := figures{}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	} else if err != nil {
		return nil, fmt.Errorf("read the figures: %w", err)
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, fmt.Errorf("read the figures %s: %w", path, err)
	}
	return out, nil
}

// write replaces the figures of a section in a file.
func (f figures) write(path, section string, measured []figure) error {
	f[section] = measured
	raw, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, append(raw, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}
