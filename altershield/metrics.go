package altershield

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sony/gobreaker/v2"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// scope names the instruments' library.
const scope = "github.com/breakwater-dev/breakwater/altershield"

// metrics are the instruments of a client:
//
//	breakwater.altershield.calls          attempts, by action and result
//	breakwater.altershield.call.duration  seconds of an attempt, by action and result
//	breakwater.altershield.breaker.state    0 closed, 1 half open, 2 open
//	breakwater.altershield.breaker.changes  changes of that, by the state it came to
//
// result is a result code of the server (000 also for a success without one,
// other for a code that we do not know) or a TransportKind.
type metrics struct {
	calls    metric.Int64Counter
	duration metric.Float64Histogram
	state    metric.Int64Gauge
	changes  metric.Int64Counter
}

func newMetrics(provider metric.MeterProvider) *metrics {
	meter := provider.Meter(scope)
	// The API returns a usable instrument beside any error, which can only be
	// a bad name.
	calls, _ := meter.Int64Counter("breakwater.altershield.calls",
		metric.WithDescription("Attempts to call the AlterShield server."), metric.WithUnit("{call}"))
	duration, _ := meter.Float64Histogram("breakwater.altershield.call.duration",
		metric.WithDescription("Duration of an attempt to call the AlterShield server."), metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10))
	state, _ := meter.Int64Gauge("breakwater.altershield.breaker.state",
		metric.WithDescription("State of the circuit breaker towards the server: 0 closed, 1 half open, 2 open."))
	changes, _ := meter.Int64Counter("breakwater.altershield.breaker.changes",
		metric.WithDescription("Changes of the circuit breaker's state, by the state that it came to."), metric.WithUnit("{change}"))
	return &metrics{calls: calls, duration: duration, state: state, changes: changes}
}

func (m *metrics) count(ctx context.Context, action string, err error) {
	m.calls.Add(ctx, 1, labels(action, err))
}

func (m *metrics) time(ctx context.Context, action string, err error, took time.Duration) {
	m.duration.Record(ctx, took.Seconds(), labels(action, err))
}

// breaker records that the breaker came to a state.
func (m *metrics) breaker(ctx context.Context, to gobreaker.State) {
	m.breakerIs(ctx, to)
	m.changes.Add(ctx, 1, metric.WithAttributes(attribute.String("to", to.String())))
}

func (m *metrics) breakerIs(ctx context.Context, state gobreaker.State) {
	m.state.Record(ctx, int64(state))
}

func labels(action string, err error) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("action", action), attribute.String("result", resultOf(err)))
}

// resultOf bounds the label: what a server answers must not make new series.
func resultOf(err error) string {
	var result *ResultError
	var transport *TransportError
	switch {
	case err == nil:
		return CodeOK
	case errors.As(err, &transport):
		return string(transport.Kind)
	case errors.As(err, &result) && slices.Contains(knownCodes(), result.Code):
		return result.Code
	default:
		return "other"
	}
}

func knownCodes() []string {
	return []string{CodeArgument, CodeSignature, CodeState, CodeNotFound, CodeExists, CodeInternal}
}
