package budget

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// interval is the least time between two looks at a budget. While many of its
// pods are charged the webhooks write to it at every moment, and a write of ours
// costs each of them a conflict: it is stormInterval then. What it delays is that
// a slot that became free is seen, and that entries leave the status.
const (
	minInterval  = 100 * time.Millisecond
	busyInterval = 400 * time.Millisecond
	// storm is from how many charges on there are many.
	busyCharges = 5
)

// pace keeps the looks at each budget apart: a thousand pods that go at once are
// ten writes a second.
type throttle struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	last map[types.NamespacedName]time.Time
}

func newThrottle(c clock.PassiveClock) *throttle {
	return &throttle{clock: c, last: map[types.NamespacedName]time.Time{}}
}

// wait returns how long to wait until the next look at a budget with so many
// charges; 0 if it may be now.
func (p *throttle) wait(key types.NamespacedName, charges int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	apart := minInterval
	if charges >= busyCharges {
		apart = busyInterval
	}
	return max(p.last[key].Add(apart).Sub(p.clock.Now()), 0)
}

// looked notes a look.
func (p *throttle) record(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[key] = p.clock.Now()
}

// forget drops what is known of a budget.
func (p *throttle) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, key)
}
