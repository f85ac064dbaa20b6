package submit

import (
	"context"
	"time"

	"github.com/breakwater-dev/breakwater/altershield"
)

const throttledReason = "the rate limit (qps) has no free slot; the reconciler sends the wake-up again"

// writesBatch reports whether the decision writes to the batch.
func (d Decision) writesBatch() bool {
	return d.Action == StartBatch || d.Action == FinishBatch || d.Action == StoreAnswer
}

// writesOrder reports whether the decision writes the intent of a call for the order.
func (d Decision) writesOrder() bool {
	return d.Action == StartOrder || d.Action == FinishOrder || d.Action == CloseOrder
}

// breakerOpen is the decision while the circuit breaker refuses calls. Nothing is written, because
// the timeout of a stage counts from the intent of its first call.
var breakerOpen = Decision{Nothing, "the circuit breaker is open; the reconciler sends the wake-up again"}

// reserve waits for the rate limit if the decision is a call, and returns the decision. If the limit
// has no free slot within the duration, or the circuit breaker is open then, no call is made.
func reserve(ctx context.Context, server Server, d Decision, within time.Duration) (*altershield.Reservation, Decision) {
	if d.Action == StoreAnswer {
		return nil, d
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	slot, err := server.Reserve(ctx)
	switch {
	case err != nil:
		return nil, Decision{Throttled, throttledReason}
	case server.BreakerOpen():
		slot.Cancel()
		return nil, breakerOpen
	}
	return slot, d
}
