package finalizer

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// soon and late are the pauses between two looks at what is being revoked.
	soon = 250 * time.Millisecond
	late = 10 * time.Second
)

// tries remembers pods whose permissions are being revoked. It is in memory
// only: a process that is new tries anew.
type tries struct {
	mu  sync.Mutex
	all map[types.NamespacedName]*try
}

type try struct {
	uid   types.UID
	seen  time.Time
	pause time.Duration
}

func newTries() *tries { return &tries{all: map[types.NamespacedName]*try{}} }

// next notes a try, and returns when the pod was first seen to have ended, and
// after how long to try again.
func (t *tries) next(at types.NamespacedName, uid types.UID, now time.Time) (seen time.Time, again time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.all[at]
	if one == nil || one.uid != uid {
		one = &try{uid: uid, seen: now, pause: soon / 2}
		t.all[at] = one
	}
	one.pause = min(2*one.pause, late)
	return one.seen, one.pause
}

func (t *tries) forget(at types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, at)
}
