package lifecycle

import (
	"context"
	"time"

	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// ResumeAfterClockSetBack makes steps due that wait only because the clock was ahead when they were scheduled. latest
// is the latest time that an earlier call has returned, zero for the first call of a process. Only the first call, and
// calls after the clock was set back, read the steps.
func (e *Engine) ResumeAfterClockSetBack(ctx context.Context, latest time.Time) (time.Time, error) {
	now := e.Clock.Now().Round(0) // the monotonic clock is never set back
	if !latest.IsZero() && !now.Before(latest) {
		return now, nil
	}
	err := e.Store.WriteInBackground(ctx, func(tx store.Tx) error { return tx.ResumeSteps(now, now.Add(pollOverlap)) })
	if err == nil && latest.IsZero() {
		latest = now
	}
	return latest, err
}
