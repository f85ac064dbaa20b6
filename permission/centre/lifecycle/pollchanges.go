package lifecycle

import (
	"context"
	"time"

	"github.com/breakwater-dev/breakwater/permission/notifier"
)

// pollOverlap is the maximum clock skew between replicas.
const pollOverlap = 5 * time.Second

// PollChanges notifies watchers of changes by other replicas until ctx ends.
func (e *Engine) PollChanges(ctx context.Context, watchers *notifier.Notifier) error {
	known := map[string]int64{}
	for e.sleep(ctx, e.Clock.Now().Add(pollInterval)) == nil {
		if watchers.Count() == 0 {
			continue
		}
		versions, err := e.Store.View(ctx).ChangedSince(e.Clock.Now().Add(-pollOverlap))
		if err != nil {
			if ctx.Err() == nil {
				e.Log.Error("could not read the changes of other replicas", "error", err)
			}
			continue
		}
		for id, version := range versions {
			if known[id] != version {
				watchers.Notify(id)
			}
		}
		known = versions
	}
	return nil
}
