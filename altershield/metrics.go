package altershield

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sony/gobreaker/v2"
	"go.opentelemetry.io/otel/metric"

	"github.com/breakwater-dev/breakwater/internal/metrics"
)

// instruments are the metrics of a client. Label result is a result code of the
// server (000 also for a success without a code, other for an unknown code) or a
// CallErrorKind.
type instruments struct {
	attempts    metrics.Counter
	duration    metrics.Histogram
	transitions metrics.Counter
	meter       metric.Meter
}

func newInstruments(provider metric.MeterProvider) *instruments {
	meter := provider.Meter(metrics.Scope)
	return &instruments{
		attempts:    metrics.NewCounter(meter, "breakwater_altershield_call_attempts_total"),
		duration:    metrics.NewHistogram(meter, "breakwater_altershield_call_attempt_duration_seconds"),
		transitions: metrics.NewCounter(meter, "breakwater_altershield_breaker_transitions_total"),
		meter:       meter,
	}
}

func (m *instruments) count(ctx context.Context, action string, err error) {
	m.attempts.Add(ctx, 1, action, resultOf(err))
}

func (m *instruments) time(ctx context.Context, action string, err error, took time.Duration) {
	m.duration.Record(ctx, took.Seconds(), action, resultOf(err))
}

// recordTransition records a transition of the breaker.
func (m *instruments) recordTransition(ctx context.Context, to gobreaker.State) {
	m.transitions.Add(ctx, 1, to.String())
}

// observeState reads the state of the breaker at each scrape, until the registration is removed.
// The end of the pause is a change of the state without a call.
func (m *instruments) observeState(state func() gobreaker.State) metric.Registration {
	return metrics.Observe(m.meter, "breakwater_altershield_breaker_state", func(observe func(int64, ...string)) {
		observe(int64(state()))
	})
}

// resultOf returns the label result. Unknown codes share one value, so that a
// server cannot create new time series.
func resultOf(err error) string {
	var result *ResultError
	var callErr *CallError
	switch {
	case err == nil:
		return CodeOK
	case errors.As(err, &callErr):
		return string(callErr.Kind)
	case errors.As(err, &result) && slices.Contains(knownCodes(), result.Code):
		return result.Code
	default:
		return "other"
	}
}

func knownCodes() []string {
	return []string{CodeArgument, CodeSignature, CodeState, CodeNotFound, CodeExists, CodeInternal}
}
