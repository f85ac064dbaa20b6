package centre

import (
	"sync/atomic"
	"testing"
	"time"
)

// measureStalls returns a function that returns the longest time for which a goroutine of this
// process has waited for a CPU. A call may arrive at the provider that much later than others, and so in
// the same second as calls that were sent later.
func measureStalls(t *testing.T) func() time.Duration {
	t.Helper()
	const interval = 5 * time.Millisecond
	var longest atomic.Int64
	ticker := time.NewTicker(interval)
	t.Cleanup(ticker.Stop)
	go func() {
		last := time.Now()
		for t.Context().Err() == nil {
			select {
			case <-t.Context().Done():
			case <-ticker.C:
				now := time.Now()
				longest.Store(max(longest.Load(), int64(now.Sub(last)-interval)))
				last = now
			}
		}
	}()
	return func() time.Duration { return time.Duration(longest.Load()) }
}
