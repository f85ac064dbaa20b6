// Package metrics defines every metric of Breakwater and creates its
// instruments.
//
// A definition has the name that a Prometheus scrape shows. The name says the
// type: `_total` is a counter, Bounds make a histogram, all others are gauges.
// docs/metrics.md is generated from the definitions.
package metrics

import (
	"context"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Scope is the instrumentation scope of all instruments.
const Scope = "github.com/breakwater-dev/breakwater"

// Meter returns the meter of the process's meter provider.
func Meter() metric.Meter { return otel.Meter(Scope) }

// Counter counts events.
type Counter struct {
	definition Definition
	instrument metric.Int64Counter
}

// NewCounter creates the counter of that name. It panics when there is no such
// definition: names are constants, so the first test that runs it fails.
func NewCounter(meter metric.Meter, name string) Counter {
	d := find(name, TypeCounter)
	instrument, err := meter.Int64Counter(name, metric.WithDescription(d.Help), metric.WithUnit(d.ucum()))
	must(err)
	return Counter{d, instrument}
}

// Add adds n. The label values are in the order of Definition.Labels.
func (c Counter) Add(ctx context.Context, n int64, values ...string) {
	c.instrument.Add(ctx, n, c.definition.with(values))
}

// Histogram counts values by the bounds of its definition.
type Histogram struct {
	definition Definition
	instrument metric.Float64Histogram
}

// NewHistogram creates the histogram of that name, and panics as NewCounter does.
func NewHistogram(meter metric.Meter, name string) Histogram {
	d := find(name, TypeHistogram)
	instrument, err := meter.Float64Histogram(name, metric.WithDescription(d.Help), metric.WithUnit(d.ucum()),
		metric.WithExplicitBucketBoundaries(d.Bounds...))
	must(err)
	return Histogram{d, instrument}
}

// Record records a value. The label values are in the order of Definition.Labels.
func (h Histogram) Record(ctx context.Context, value float64, values ...string) {
	h.instrument.Record(ctx, value, h.definition.with(values))
}

// Observe calls read at each scrape for the values of a gauge, until the
// registration is removed. It panics as NewCounter does.
func Observe(meter metric.Meter, name string, read func(observe func(value int64, values ...string))) metric.Registration {
	d := find(name, TypeGauge)
	instrument, err := meter.Int64ObservableGauge(name, metric.WithDescription(d.Help), metric.WithUnit(d.ucum()))
	must(err)
	registration, err := meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		read(func(value int64, values ...string) { o.ObserveInt64(instrument, value, d.with(values)) })
		return nil
	}, instrument)
	must(err)
	return registration
}

// Bool is the value of a gauge that is 1 while something holds.
func Bool(holds bool) int64 {
	if holds {
		return 1
	}
	return 0
}

// Find returns the definition of that name, and panics as NewCounter does. It is
// for a process that has a Prometheus registry of its own.
func Find(name string) Definition {
	for _, group := range Groups() {
		for _, d := range group.Metrics {
			if d.Name == name {
				return d
			}
		}
	}
	panic(fmt.Sprintf("metric %s: no definition", name))
}

func find(name string, t Type) Definition {
	d := Find(name)
	if d.Type() != t {
		panic(fmt.Sprintf("metric %s: is a %s, not a %s", name, d.Type(), t))
	}
	return d
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// with returns the labels with these values.
func (d Definition) with(values []string) metric.MeasurementOption {
	if len(values) != len(d.Labels) {
		panic(fmt.Sprintf("metric %s: %d values for labels %s", d.Name, len(values), strings.Join(d.Labels, ", ")))
	}
	attributes := make([]attribute.KeyValue, len(values))
	for i, value := range values {
		attributes[i] = attribute.String(d.Labels[i], value)
	}
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}
