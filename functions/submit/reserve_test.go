package submit

import (
	"context"
	"errors"
	"testing"

	"github.com/breakwater-dev/breakwater/altershield"
)

// limited is a server whose calls wait for the rate limit, and then find the circuit breaker.
type limited struct {
	Server
	err         error
	breakerOpen bool
}

func (l limited) Reserve(context.Context) (*altershield.Reservation, error) { return nil, l.err }
func (l limited) BreakerOpen() bool                                         { return l.breakerOpen }

func TestTheCircuitBreakerIsCheckedAfterTheWaitForTheRateLimit(t *testing.T) {
	start, answer := Decision{StartBatch, "PRE is due"}, Decision{StoreAnswer, "the answer was lost"}
	for name, tc := range map[string]struct {
		decision Decision
		server   limited
		want     Decision
	}{
		"a free slot":                        {start, limited{}, start},
		"no free slot in time":               {start, limited{err: errors.New("full")}, Decision{Throttled, throttledReason}},
		"the breaker opened during the wait": {start, limited{breakerOpen: true}, breakerOpen},
		"an answer needs no call":            {answer, limited{err: errors.New("full"), breakerOpen: true}, answer},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := reserve(t.Context(), tc.server, tc.decision, 0); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}
