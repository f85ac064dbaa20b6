package namespacelabel

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// idle knows since when namespaces have had a label that is of no use. A process
// that has just begun to lead waits anew.
type unusedLabels struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

// look returns for how long a namespace is known to have such a label: not at all
// when it is looked at for the first time.
func (i *unusedLabels) unusedFor(uid types.UID, now time.Time) time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	// One that was not looked at when it was time has gone, or another process led
	// meanwhile.
	maps.DeleteFunc(i.since, func(_ types.UID, since time.Time) bool {
		return now.Before(since) || now.Sub(since) >= 2*removalDelay
	})
	if since, known := i.since[uid]; known {
		return now.Sub(since)
	}
	if i.since == nil {
		i.since = map[types.UID]time.Time{}
	}
	i.since[uid] = now
	return 0
}

// forget is told of a namespace whose label is of use, or gone.
func (i *unusedLabels) forget(uid types.UID) {
	i.mu.Lock()
	defer i.mu.Unlock()
	delete(i.since, uid)
}
