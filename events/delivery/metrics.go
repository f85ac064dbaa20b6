package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/breakwater-dev/breakwater/events"
)

// Why an event was dropped, as the metric names it; beside these it has the
// result of the last try.
const (
	droppedFull     = "queue_full"
	droppedShutdown = "shutdown"
)

// metrics are the sender's instruments. The labels type, result and reason
// take only values that are constants here.
type metrics struct {
	sent      metric.Int64Counter
	dropped   metric.Int64Counter
	coalesced metric.Int64Counter
	duration  metric.Float64Histogram
	observer  metric.Registration
}

func newMetrics(provider metric.MeterProvider, length func() int, t *Target) (*metrics, error) {
	meter := provider.Meter("github.com/breakwater-dev/breakwater/events")
	m := &metrics{}
	errs := make([]error, 6)
	m.sent, errs[0] = meter.Int64Counter("breakwater.events.sent",
		metric.WithDescription("Tries to hand an event to the Broker, by result."), metric.WithUnit("{try}"))
	m.dropped, errs[1] = meter.Int64Counter("breakwater.events.dropped",
		metric.WithDescription("Events that were given up, by reason."), metric.WithUnit("{event}"))
	m.coalesced, errs[2] = meter.Int64Counter("breakwater.events.coalesced",
		metric.WithDescription("Events that replaced one of the same id before it was sent."), metric.WithUnit("{event}"))
	m.duration, errs[3] = meter.Float64Histogram("breakwater.events.send.duration",
		metric.WithDescription("How long the Broker took to answer one try."), metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30))
	waiting, err := meter.Int64ObservableGauge("breakwater.events.queue.length",
		metric.WithDescription("Events that wait to be sent."), metric.WithUnit("{event}"))
	errs[4] = err
	known, err := meter.Int64ObservableGauge("breakwater.events.broker.known",
		metric.WithDescription("1 while there is a Broker to send to, else 0."))
	errs[5] = err
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("make the instruments of the event sender: %w", err)
	}
	m.observer, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(waiting, int64(length()))
		var is int64
		if t.get().client != nil {
			is = 1
		}
		o.ObserveInt64(known, is)
		return nil
	}, waiting, known)
	if err != nil {
		return nil, fmt.Errorf("make the instruments of the event sender: %w", err)
	}
	return m, nil
}

func (m *metrics) tried(ctx context.Context, eventType, result string, took time.Duration) {
	labels := metric.WithAttributeSet(attribute.NewSet(typeLabel(eventType), attribute.String("result", result)))
	m.sent.Add(ctx, 1, labels)
	m.duration.Record(ctx, took.Seconds(), labels)
}

func (m *metrics) drop(ctx context.Context, eventType, reason string) {
	m.dropped.Add(ctx, 1, metric.WithAttributeSet(
		attribute.NewSet(typeLabel(eventType), attribute.String("reason", reason))))
}

func (m *metrics) coalesce(ctx context.Context, eventType string) {
	m.coalesced.Add(ctx, 1, metric.WithAttributeSet(attribute.NewSet(typeLabel(eventType))))
}

// typeLabel keeps the label bounded, whatever is sent.
func typeLabel(eventType string) attribute.KeyValue {
	if !slices.Contains(events.Types(), eventType) {
		eventType = "other"
	}
	return attribute.String("type", eventType)
}
