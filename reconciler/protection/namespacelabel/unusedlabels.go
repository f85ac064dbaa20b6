package namespacelabel

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// unusedLabels records since when namespaces have a label that they do not need. A
// new leader starts again.
type unusedLabels struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

// unusedFor returns how long a namespace is known to have an unneeded label; 0 when
// it is first seen.
func (u *unusedLabels) unusedFor(uid types.UID, now time.Time) time.Duration {
	u.mu.Lock()
	defer u.mu.Unlock()
	// Drop records of deleted namespaces, and records from an earlier time as the leader.
	maps.DeleteFunc(u.since, func(_ types.UID, since time.Time) bool {
		return now.Before(since) || now.Sub(since) >= 2*removalDelay
	})
	if since, known := u.since[uid]; known {
		return now.Sub(since)
	}
	if u.since == nil {
		u.since = map[types.UID]time.Time{}
	}
	u.since[uid] = now
	return 0
}

// forget deletes the record of a namespace that needs its label or has none.
func (u *unusedLabels) forget(uid types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.since, uid)
}
