package metrics

import "strings"

// Type is the Prometheus type of a metric.
type Type string

// The types.
const (
	TypeCounter   Type = "counter"
	TypeGauge     Type = "gauge"
	TypeHistogram Type = "histogram"
)

// Definition describes a metric.
type Definition struct {
	// Name is the name in a Prometheus scrape.
	Name string
	// Unit is the unit of the values; empty for a state.
	Unit string
	// Labels are the names of the labels. Each has a bounded set of values:
	// constants, kinds, or names of objects that administrators create.
	Labels []string
	// Help is the meaning, for the scrape and for docs/metrics.md.
	Help string
	// Bounds are the upper bounds of a histogram.
	Bounds []float64
	// SummedOverProcesses: the values that all processes have of the gauge are summed, because each
	// is an amount that its process alone has. Of other gauges the worst value counts.
	SummedOverProcesses bool
	// LeastIsWorst: the worst value of the gauge is the least one, else the greatest.
	LeastIsWorst bool
}

// Group is the metrics of one subject.
type Group struct {
	Title string
	// Components expose the metrics: the names of their Deployments and Knative Services.
	Components []string
	Metrics    []Definition
}

// Type returns the type, which follows from name and bounds.
func (d Definition) Type() Type {
	switch {
	case d.Bounds != nil:
		return TypeHistogram
	case strings.HasSuffix(d.Name, "_total"):
		return TypeCounter
	default:
		return TypeGauge
	}
}

// ucum returns the unit as OpenTelemetry writes it.
func (d Definition) ucum() string {
	switch d.Unit {
	case "":
		return ""
	case "seconds":
		return "s"
	default:
		return "{" + d.Unit + "}"
	}
}

// Groups returns all definitions.
func Groups() []Group {
	var all []Group
	for _, groups := range [][]Group{shared(), change(), protection(), permission()} {
		all = append(all, groups...)
	}
	return all
}

// words returns the words of a list.
func words(list string) []string { return strings.Fields(list) }
