package lifecycle

import (
	"context"
	"time"
)

const (
	// followEvery is how soon those who wait here learn of what another
	// replica did, and followBack how far apart the replicas' clocks may be.
	followEvery = 250 * time.Millisecond
	followBack  = 5 * time.Second
)

// Follow tells the hub of changes by other replicas, until ctx ends.
func (e *Engine) Follow(ctx context.Context, hub *Hub) error {
	known := map[string]int64{}
	for e.sleep(ctx, e.Clock.Now().Add(followEvery)) == nil {
		if !hub.Waiting() {
			continue
		}
		versions, err := e.Store.View(ctx).ChangedSince(e.Clock.Now().Add(-followBack))
		if err != nil {
			if ctx.Err() == nil {
				e.Log.Error("look for changes of other replicas", "error", err)
			}
			continue
		}
		for id, version := range versions {
			if known[id] != version {
				hub.Changed(id)
			}
		}
		known = versions
	}
	return nil
}
