package lifecycle

import (
	"context"
	"time"

	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

// ResumeAfterClockSetBack makes steps due that wait only because the clock was ahead when their grant entered its state, or
// was due or called for the first time. latest is the latest time that it has returned in this process, zero at first. It
// reads the steps only if latest is zero, and after the clock was set back.
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
