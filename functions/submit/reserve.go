package submit

import (
	"context"
	"time"

	"github.com/breakwater-dev/breakwater/altershield"
)

// Throttled means that the rate limit of the server left no room for the call in time.
// Nothing is written; the reconciler sends the wake-up again.
const Throttled Outcome = "throttled"

const throttledReason = "the rate limit (qps) leaves no room; the reconciler sends the wake-up again"

// writesBatch reports whether the decision writes to the batch.
func (d Decision) writesBatch() bool {
	return d.Outcome == StartBatch || d.Outcome == FinishBatch || d.Outcome == StoreAnswer
}

// writesOrder reports whether the decision writes the intent of a call for the order.
func (d Decision) writesOrder() bool {
	return d.Outcome == StartOrder || d.Outcome == FinishOrder || d.Outcome == CloseOrder
}

// reserve waits for the rate limit if the decision is a call. It returns false if the
// limit leaves no room within the duration.
func reserve(ctx context.Context, server Server, d Decision, within time.Duration) (*altershield.Reservation, bool) {
	if d.Outcome == StoreAnswer {
		return nil, true
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	place, err := server.Reserve(ctx)
	return place, err == nil
}
