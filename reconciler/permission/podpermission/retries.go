package podpermission

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/breakwater-dev/breakwater/permission/api"
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
	// reported are the results that were reported: of an application its id and state, and GiveUp.
	reported sets.Set[string]
}

func newRetries() *retries { return &retries{all: map[types.NamespacedName]*retryState{}} }

// next records a retry, and returns when the pod was first seen to have ended and
// the delay until the next retry.
func (t *retries) next(at types.NamespacedName, uid types.UID, now time.Time) (firstSeen time.Time, delay time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	state := t.all[at]
	if state == nil || state.uid != uid {
		t.all[at] = &retryState{uid: uid, firstSeen: now, delay: minRetryDelay, reported: sets.New[string]()}
		return now, minRetryDelay
	}
	state.delay = min(2*state.delay, maxRetryDelay)
	return state.firstSeen, max(state.delay, time.Duration(len(t.all))*time.Second/maxRetriesPerSecond)
}

// unreported returns the revocation with only the results that were not reported yet, and records
// them. Its Action is RemoveFinalizer if GiveUp was reported. The pod must have a retry.
func (t *retries) unreported(at types.NamespacedName, r Revocation) Revocation {
	t.mu.Lock()
	defer t.mu.Unlock()
	reported := t.all[at].reported
	wasReported := func(result string) bool {
		was := reported.Has(result)
		reported.Insert(result)
		return was
	}
	of := func(app api.Application) bool { return wasReported(app.ID + " " + string(app.State)) }
	if r.HasOrAwaitsGrantUnder != "" {
		r.Revoked = nil // they are reported when the pod has no grant under another name
	}
	r.Revoked, r.Leaked = slices.DeleteFunc(r.Revoked, of), slices.DeleteFunc(r.Leaked, of)
	if r.Action == GiveUp && wasReported(string(GiveUp)) {
		r.Action = RemoveFinalizer
	}
	return r
}

func (t *retries) forget(at types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, at)
}
