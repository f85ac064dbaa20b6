package altershield

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
	"go.opentelemetry.io/otel/metric"
)

// breaker is the circuit breaker of a client. It opens after
// Config.BreakerFailures consecutive attempts without a usable answer, and calls
// then fail at once for Config.BreakerPause. After the pause one attempt decides
// whether it closes or the pause starts again. An overloaded server can recover,
// and calls resume without an operator.
//
// An attempt without an answer and result code 901 count as failures. A rejection with
// another result code, such as 101, is an answer.
type breaker struct {
	circuit *gobreaker.CircuitBreaker[struct{}]
	// cause is the error of the last failed attempt.
	cause atomic.Pointer[string]
	// observed is the metric of the state.
	observed metric.Registration
}

func newBreaker(failures int, pause time.Duration, metrics *instruments) *breaker {
	b := &breaker{}
	b.circuit = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     pause,
		ReadyToTrip: func(c gobreaker.Counts) bool { return int64(c.ConsecutiveFailures) >= int64(failures) },
		IsSuccessful: func(err error) bool {
			return !countsAsFailure(err)
		},
		IsExcluded: func(err error) bool {
			callErr, ok := errors.AsType[*CallError](err)
			return ok && callErr.Kind == KindCanceled
		},
		OnStateChange: func(_ string, _, to gobreaker.State) { metrics.recordTransition(context.Background(), to) },
	})
	b.observed = metrics.observeState(b.circuit.State)
	return b
}

// do makes an attempt, unless the breaker is open.
func (b *breaker) do(action string, attempt func() error) error {
	_, err := b.circuit.Execute(func() (struct{}, error) {
		err := attempt()
		if countsAsFailure(err) {
			cause := err.Error()
			b.cause.Store(&cause)
		}
		return struct{}{}, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		cause := errors.New("circuit breaker is open")
		if last := b.cause.Load(); last != nil {
			cause = errors.New("circuit breaker is open; last error: " + *last)
		}
		return &CallError{Action: action, Kind: KindBreaker, Err: cause}
	}
	return err
}

// open reports whether calls fail at once now: also while the attempt after a pause is made.
func (b *breaker) open() bool {
	switch b.circuit.State() {
	case gobreaker.StateOpen:
		return true
	case gobreaker.StateHalfOpen:
		c := b.circuit.Counts()
		return c.Requests > c.TotalExclusions
	default:
		return false
	}
}

// countsAsFailure reports whether the breaker counts an attempt as a failure: one without a
// usable answer, or with result code 901.
func countsAsFailure(err error) bool {
	callErr, ok := errors.AsType[*CallError](err)
	return IsInternal(err) || (ok && callErr.Kind != KindCanceled && callErr.Kind != KindBreaker &&
		!callErr.isUnsupported())
}

// isUnsupported reports whether the server does not have an optional action: a server
// other than AlterShield may not have resubmit.
func (e *CallError) isUnsupported() bool {
	return e.Action == actionResubmit && e.Kind == KindStatus && e.Status == http.StatusNotFound
}

// IsBreakerOpen reports whether the call was not made because the circuit breaker
// was open, or another call was testing the server after a pause. The server has not received it.
func IsBreakerOpen(err error) bool {
	callErr, ok := errors.AsType[*CallError](err)
	return ok && callErr.Kind == KindBreaker
}

// BreakerOpen reports whether the circuit breaker would refuse every call now. Check it
// before the intent of a call is written.
func (c *Client) BreakerOpen() bool { return c.caller.breaker.open() }
