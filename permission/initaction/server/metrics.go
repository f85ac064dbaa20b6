package server

import (
	"context"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/permission/notifier"
)

// instruments are the metrics of a replica.
type instruments struct {
	requests, rejected, leakedAddresses, breakers metrics.Counter
	duration                                      metrics.Histogram
}

func newInstruments(meter metric.Meter, waiting *notifier.Notifier) *instruments {
	metrics.Observe(meter, "breakwater_init_action_requests_waiting", func(observe func(int64, ...string)) {
		observe(int64(waiting.Count()))
	})
	return &instruments{
		requests:        metrics.NewCounter(meter, "breakwater_init_action_requests_total"),
		rejected:        metrics.NewCounter(meter, "breakwater_init_action_requests_rejected_total"),
		leakedAddresses: metrics.NewCounter(meter, "breakwater_init_action_leaked_address_requests_total"),
		breakers:        metrics.NewCounter(meter, "breakwater_permission_breaker_transitions_total"),
		duration:        metrics.NewHistogram(meter, "breakwater_init_action_request_duration_seconds"),
	}
}

func (m *instruments) ended(ctx context.Context, state, reason string, took time.Duration) {
	m.requests.Add(ctx, 1, state, reason)
	m.duration.Record(ctx, took.Seconds(), state)
}

func (m *instruments) reject(ctx context.Context, route string, status int, reason string) {
	if route == "" {
		route = "other"
	}
	m.rejected.Add(ctx, 1, route, strconv.Itoa(status), reason)
}

func (m *instruments) breaker(ctx context.Context, reason string) {
	m.breakers.Add(ctx, 1, reason)
}
