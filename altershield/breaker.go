package altershield

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"
)

// breaker stops calls to a server that is away: after Config.BreakerFailures
// attempts in a row that got no usable answer, every call is refused at once
// for Config.BreakerPause. Then one attempt is let through, and its end decides
// whether calls go on or the pause begins anew. So a server that comes back is
// called again without a person, and one that is overloaded has time to.
//
// What counts is that there was no answer, or 901: a refusal (1xx) is an answer.
type breaker struct {
	circuit *gobreaker.CircuitBreaker[struct{}]
	// cause is why the last attempt had no answer.
	cause atomic.Pointer[string]
}

func newBreaker(failures int, pause time.Duration, metrics *instruments) *breaker {
	b := &breaker{}
	b.circuit = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     pause,
		ReadyToTrip: func(c gobreaker.Counts) bool { return int64(c.ConsecutiveFailures) >= int64(failures) },
		IsSuccessful: func(err error) bool {
			return !isAway(err)
		},
		IsExcluded: func(err error) bool {
			var transport *TransportError
			return errors.As(err, &transport) && transport.Kind == KindCanceled
		},
		OnStateChange: func(_ string, _, to gobreaker.State) { metrics.breaker(context.Background(), to) },
	})
	metrics.breakerIs(context.Background(), gobreaker.StateClosed)
	return b
}

// do makes an attempt, or refuses to.
func (b *breaker) do(action string, attempt func() error) error {
	_, err := b.circuit.Execute(func() (struct{}, error) {
		err := attempt()
		if isAway(err) {
			cause := err.Error()
			b.cause.Store(&cause)
		}
		return struct{}{}, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		cause := errors.New("the server was away a moment ago")
		if last := b.cause.Load(); last != nil {
			cause = errors.New("the server was away a moment ago: " + *last)
		}
		return &TransportError{Action: action, Kind: KindBreaker, Err: cause}
	}
	return err
}

// open says whether every call would be refused now.
func (b *breaker) open() bool { return b.circuit.State() == gobreaker.StateOpen }

// isAway says whether an attempt got no answer that the server stands behind.
func isAway(err error) bool {
	var transport *TransportError
	return IsInternal(err) || (errors.As(err, &transport) && transport.Kind != KindCanceled && transport.Kind != KindBreaker)
}

// IsBreakerOpen says that the call was not made because the server was away a
// moment ago. Nothing has reached the server.
func IsBreakerOpen(err error) bool {
	var transport *TransportError
	return errors.As(err, &transport) && transport.Kind == KindBreaker
}

// BreakerOpen says whether every call would be refused now, because the server
// was away a moment ago. Ask it before writing that a call is made.
func (c *Client) BreakerOpen() bool { return c.caller.breaker.open() }
