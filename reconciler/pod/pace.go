package pod

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

const (
	// labelsAtOnce is how many pods of a release are labelled as they become Ready.
	labelsAtOnce = 20
	// labelsPerSecond is how many more are labelled a second.
	labelsPerSecond = 5
	// releasesPaced is how many releases are paced. Of more than that under way,
	// the one that was quiet the longest begins anew.
	releasesPaced = 1000
)

// pace spreads the labels of a large release over time. Nobody waits for them:
// a pod goes before the judge because it is Ready. A write for each pod, which
// everybody who watches pods then reads, is a fifth of what a roll-out costs the
// control plane, and would be taken from it.
type pace struct {
	limiters *lru.Cache
	clock    clock.PassiveClock
}

func newPace(c clock.PassiveClock) *pace {
	return &pace{limiters: lru.New(releasesPaced), clock: c}
}

// next returns how long the label of one more pod of an owner waits. It is for
// one goroutine.
func (p *pace) next(owner types.UID) time.Duration {
	cached, ok := p.limiters.Get(owner)
	if !ok {
		cached = rate.NewLimiter(labelsPerSecond, labelsAtOnce)
		p.limiters.Add(owner, cached)
	}
	now := p.clock.Now()
	return cached.(*rate.Limiter).ReserveN(now, 1).DelayFrom(now)
}
