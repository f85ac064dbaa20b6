package finalizer

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// soon and late are the pauses between two looks at what is being revoked.
	minRetryDelay = 250 * time.Millisecond
	maxRetryDelay = 10 * time.Second
)

// tries remembers pods whose permissions are being revoked. It is in memory
// only: a process that is new tries anew.
type retries struct {
	mu  sync.Mutex
	all map[types.NamespacedName]*retryState
}

type retryState struct {
	uid       types.UID
	firstSeen time.Time
	delay     time.Duration
}

func newRetries() *retries { return &retries{all: map[types.NamespacedName]*retryState{}} }

// next notes a try, and returns when the pod was first seen to have ended, and
// after how long to try again.
func (t *retries) next(at types.NamespacedName, uid types.UID, now time.Time) (seen time.Time, again time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.all[at]
	if one == nil || one.uid != uid {
		one = &retryState{uid: uid, firstSeen: now, delay: minRetryDelay / 2}
		t.all[at] = one
	}
	one.delay = min(2*one.delay, maxRetryDelay)
	return one.firstSeen, one.delay
}

func (t *retries) forget(at types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, at)
}
