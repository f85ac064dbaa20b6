package podpermission

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// minRetryDelay and maxRetryDelay bound the delay between two checks of a
	// revocation, unless there are more than maxRetriesPerSecond. The first check always follows after
	// minRetryDelay: a fast provider has revoked then.
	minRetryDelay = 250 * time.Millisecond
	maxRetryDelay = 10 * time.Second
	// maxRetriesPerSecond leaves calls to the centre for pods that end, and workers for new pods.
	maxRetriesPerSecond = centreCallsPerSecond / 2
)

// retries has the pods whose permissions are being revoked. It is in memory only; a
// new process starts again.
type retries struct {
	mu  sync.Mutex
	all map[types.NamespacedName]*retryState
}

type retryState struct {
	uid       types.UID
	firstSeen time.Time
	delay     time.Duration
	// reported is the last reported result; see Revocation.result.
	reported string
}

func newRetries() *retries { return &retries{all: map[types.NamespacedName]*retryState{}} }

// next records a retry, and returns when the pod was first seen to have ended and
// the delay until the next retry.
func (t *retries) next(at types.NamespacedName, uid types.UID, now time.Time) (firstSeen time.Time, delay time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	state := t.all[at]
	if state == nil || state.uid != uid {
		t.all[at] = &retryState{uid: uid, firstSeen: now, delay: minRetryDelay}
		return now, minRetryDelay
	}
	state.delay = min(2*state.delay, maxRetryDelay)
	return state.firstSeen, max(state.delay, time.Duration(len(t.all))*time.Second/maxRetriesPerSecond)
}

// report records the result of a revocation, and returns false if it was the last one, too. The pod must have a retry.
func (t *retries) report(at types.NamespacedName, result string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := t.all[at].reported
	t.all[at].reported = result
	return result != last
}

func (t *retries) forget(at types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, at)
}
