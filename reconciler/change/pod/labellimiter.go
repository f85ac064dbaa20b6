package pod

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// labelsAtOnce is how many pods of a release a controller labels as they become
	// Ready.
	labelBurst = 20
	// labelsPerSecond is how many more it labels a second.
	labelsPerSecond = 5
	// labelsWhileRolling is how many of them while the roll-out is under way.
	labelsWhileRolling = 1
	// lookAgain is after how long a pod that is one too many is looked at again.
	retryLimited = 5 * time.Second
	// releasesPaced is how many releases are paced. Of more than that under way,
	// the one that was quiet the longest begins anew.
	maxReleases = 1000
)

// pace spreads the labels of a large release over time. Nobody waits for them:
// a pod goes before the judge because it is Ready. A write for each pod, which
// everybody who watches pods then reads, and the event that follows it are a fifth
// of what a roll-out costs the control plane, and would be taken from it.
type labelLimiter struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	limiters *lru.Cache
}

func newLabelLimiter(c clock.PassiveClock) *labelLimiter {
	return &labelLimiter{clock: c, limiters: lru.New(maxReleases)}
}

// allows says whether one more pod of an owner may be labelled now.
func (p *labelLimiter) allows(owner types.UID, rolling bool) bool {
	perSecond := rate.Limit(labelsPerSecond)
	if rolling {
		perSecond = labelsWhileRolling
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	known, ok := p.limiters.Get(owner)
	if !ok {
		known = rate.NewLimiter(perSecond, labelBurst)
		p.limiters.Add(owner, known)
	}
	l := known.(*rate.Limiter)
	if l.Limit() != perSecond {
		l.SetLimitAt(now, perSecond)
	}
	return l.AllowN(now, 1)
}
