package delivery

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/metrics"
)

// Values of the label reason of dropped events. Other values are results of the last
// attempt.
const (
	droppedFull     = "queue_full"
	droppedShutdown = "shutdown"
)

// instruments are the metrics of a Sender. The labels type, result and reason take
// only values that are constants here.
type instruments struct {
	attempts, dropped, coalesced metrics.Counter
	duration                     metrics.Histogram
	observed                     []metric.Registration
}

func newInstruments(provider metric.MeterProvider, length func() int, t *Target) *instruments {
	meter := provider.Meter(metrics.Scope)
	return &instruments{
		attempts:  metrics.NewCounter(meter, "breakwater_event_send_attempts_total"),
		dropped:   metrics.NewCounter(meter, "breakwater_events_dropped_total"),
		coalesced: metrics.NewCounter(meter, "breakwater_events_coalesced_total"),
		duration:  metrics.NewHistogram(meter, "breakwater_event_send_duration_seconds"),
		observed: []metric.Registration{
			metrics.Observe(meter, "breakwater_events_queued", func(observe func(int64, ...string)) { observe(int64(length())) }),
			metrics.Observe(meter, "breakwater_event_broker_resolved", func(observe func(int64, ...string)) {
				observe(metrics.Bool(t.get().client != nil))
			}),
		},
	}
}

// unregister ends the observation of the sender.
func (m *instruments) unregister() error {
	var errs []error
	for _, r := range m.observed {
		errs = append(errs, r.Unregister())
	}
	return errors.Join(errs...)
}

func (m *instruments) tried(ctx context.Context, eventType, result string, took time.Duration) {
	m.attempts.Add(ctx, 1, events.TypeLabel(eventType), result)
	m.duration.Record(ctx, took.Seconds(), events.TypeLabel(eventType), result)
}

func (m *instruments) drop(ctx context.Context, eventType, reason string) {
	m.dropped.Add(ctx, 1, events.TypeLabel(eventType), reason)
}

func (m *instruments) coalesce(ctx context.Context, eventType string) {
	m.coalesced.Add(ctx, 1, events.TypeLabel(eventType))
}
