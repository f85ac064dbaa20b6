package server

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// metrics are what a platform team watches.
type metrics struct {
	rounds, refusals, leakedIPs, breakers metric.Int64Counter
	duration                              metric.Float64Histogram
}

func newMetrics(meter metric.Meter, hub *Notifier) (*metrics, error) {
	var m metrics
	var err error
	counter := func(name, what string) metric.Int64Counter {
		c, e := meter.Int64Counter("breakwater.permission."+name, metric.WithDescription(what))
		if e != nil && err == nil {
			err = fmt.Errorf("create counter: %w", e)
		}
		return c
	}
	m.rounds = counter("rounds", "Calls of init containers that ended, by how")
	m.refusals = counter("refusals", "Requests that were refused, by route, status and reason")
	m.leakedIPs = counter("leaked.ips", "Pods that have an address for which an old grant still holds")
	m.breakers = counter("breakers", "Breakers that opened and closed, by reason")
	if err != nil {
		return nil, err
	}
	m.duration, err = meter.Float64Histogram("breakwater.permission.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from the call of an init container to its end, by how it ended"),
		metric.WithExplicitBucketBoundaries(.05, .1, .25, .5, 1, 2, 5, 10, 30, 60, 120, 300, 600))
	if err != nil {
		return nil, fmt.Errorf("create histogram: %w", err)
	}
	_, err = meter.Int64ObservableGauge("breakwater.permission.waiting", metric.WithDescription("Init containers that wait at this replica"),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(hub.Count()))
			return nil
		}))
	if err != nil {
		return nil, fmt.Errorf("create gauge: %w", err)
	}
	return &m, nil
}

func (m *metrics) ended(ctx context.Context, state, reason string, took time.Duration) {
	how := metric.WithAttributes(attribute.String("state", state), attribute.String("reason", reason))
	m.rounds.Add(ctx, 1, how)
	m.duration.Record(ctx, took.Seconds(), metric.WithAttributes(attribute.String("state", state)))
}

func (m *metrics) refused(ctx context.Context, route string, status int, reason string) {
	if route == "" {
		route = "other"
	}
	m.refusals.Add(ctx, 1, metric.WithAttributes(attribute.String("route", route), attribute.Int("status", status), attribute.String("reason", reason)))
}

func (m *metrics) breaker(ctx context.Context, reason string) {
	m.breakers.Add(ctx, 1, metric.WithAttributes(attribute.String("reason", reason)))
}
