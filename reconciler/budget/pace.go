package budget

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// interval is the least time between two looks at a budget.
const interval = 100 * time.Millisecond

// pace keeps the looks at each budget apart: a thousand pods that go at once are
// ten writes a second.
type pace struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	last map[types.NamespacedName]time.Time
}

func newPace(c clock.PassiveClock) *pace {
	return &pace{clock: c, last: map[types.NamespacedName]time.Time{}}
}

// wait returns how long to wait until the next look; 0 if it may be now.
func (p *pace) wait(key types.NamespacedName) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.last[key].Add(interval).Sub(p.clock.Now()), 0)
}

// looked notes a look.
func (p *pace) looked(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[key] = p.clock.Now()
}

// forget drops what is known of a budget.
func (p *pace) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, key)
}
