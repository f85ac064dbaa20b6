package budget

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// minInterval is the minimum time between two reconciliations of a budget. While the webhook
// writes many charges, busyInterval applies instead, because each write of the controller
// causes a conflict for the webhook. The longer interval delays the increase of
// unavailableAllowed and the removal of charges whose outcome is known.
const (
	minInterval  = 100 * time.Millisecond
	busyInterval = 400 * time.Millisecond
	// busyCharges is the number of charges from which busyInterval applies.
	busyCharges = 5
)

// throttle spaces the reconciliations of each budget: a thousand deleted pods cause at
// most ten writes a second.
type throttle struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	last map[types.NamespacedName]time.Time
}

func newThrottle(c clock.PassiveClock) *throttle {
	return &throttle{clock: c, last: map[types.NamespacedName]time.Time{}}
}

// wait returns how long to wait until the next reconciliation of the budget; 0 if it may
// start now.
func (p *throttle) wait(key types.NamespacedName, b *v1alpha1.PodUnavailableBudget) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	apart := minInterval
	if len(b.Status.DeletedPods)+len(b.Status.UnavailablePods) >= busyCharges {
		apart = busyInterval
	}
	return max(p.last[key].Add(apart).Sub(p.clock.Now()), 0)
}

// record records a reconciliation.
func (p *throttle) record(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[key] = p.clock.Now()
}

// forget deletes the record of a budget.
func (p *throttle) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.last, key)
}
