package budget

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// catchUp is how much time the controller has to compute all budgets after it acquired
// its Lease.
const catchUp = 10 * time.Second

// startLimit is how long after its start a process waits at most for the first renewal
// that proves that the budgets are computed: catchUp, and several renewals.
const startLimit = 2 * catchUp

// ControllerLeases tells from the renewals of the controller's Leases whether the
// controller computes budgets. While it does not, the numbers in the budgets do not
// count newly lost pods, and would allow too much. A regular write to each budget would
// prove more, but cost more.
type ControllerLeases struct {
	clock   clock.PassiveClock
	limit   time.Duration
	started time.Time

	mu     sync.Mutex
	leases map[string]lease
}

// lease is what this process knows of one Lease.
type lease struct {
	// renewed is the time that the controller wrote. The clocks of two nodes differ, so
	// it is compared with the time of this process only when this process starts.
	renewed time.Time
	// acquired is when the holder acquired the Lease, by the clock of the controller.
	acquired time.Time
	// seen is when this process saw the last renewal.
	seen time.Time
	// trusted is when all budgets are expected to be computed after an outage. The holder
	// may crash before that, so only a renewal at or after this time proves that they are.
	trusted time.Time
	// ahead reports whether the only renewal that this process saw is later than the time at which
	// it saw it. The clock of the controller is ahead, so it is unknown how old the renewal is.
	ahead bool
}

// unproven reports whether no renewal proves yet that a controller computes all budgets.
func (l lease) unproven() bool { return l.ahead || l.seen.Before(l.trusted) }

// NewControllerLeases returns ControllerLeases for the Leases with these names. Budgets
// are stale when one of them is not renewed within the limit.
func NewControllerLeases(clock clock.PassiveClock, limit time.Duration, names ...string) *ControllerLeases {
	c := &ControllerLeases{clock: clock, limit: limit, started: clock.Now(), leases: map[string]lease{}}
	for _, name := range names {
		c.leases[name] = lease{seen: c.started}
	}
	return c
}

// Observe records the times of renewal and acquisition in a Lease. If the Lease was
// acquired shortly before this process first sees it, it is unknown for how long no
// controller computed budgets. A later change of the holder, which this process
// watches, is no outage.
func (c *ControllerLeases) Observe(name string, renewed, acquired time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.leases[name]
	if !ok || renewed.Equal(l.renewed) {
		return
	}
	now := c.clock.Now()
	first := l.renewed.IsZero()
	unknown := first && renewed.Sub(acquired) < catchUp
	interrupted := l.unproven() && !acquired.Equal(l.acquired)
	if !first && now.Sub(l.seen) > c.limit || unknown || interrupted {
		l.trusted = now.Add(catchUp)
	}
	l.seen = now
	if first && renewed.Before(now) {
		l.seen = renewed
	}
	l.renewed, l.acquired, l.ahead = renewed, acquired, first && renewed.After(now)
	c.leases[name] = l
}

// StartLimitPassed reports whether startLimit has passed since this process started. From then on
// readiness does not wait for the controller. It is always true for nil ControllerLeases.
func (c *ControllerLeases) StartLimitPassed() bool {
	return c == nil || c.clock.Now().Sub(c.started) >= startLimit
}

// OutageUnknown reports whether this process cannot know that there was no outage of the
// controller: it started less than startLimit ago, and when it first saw a Lease, the controller
// had just acquired it, or its renewal was ahead of the local clock. A process that started earlier
// may know it.
func (c *ControllerLeases) OutageUnknown() bool {
	if c.StartLimitPassed() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.leases {
		if l.unproven() {
			return true
		}
	}
	return false
}

// StaleReason returns the reason why the numbers of budgets may be old, or "". With nil
// ControllerLeases, the age of the numbers has no limit.
func (c *ControllerLeases) StaleReason() string {
	if c == nil {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	var reasons []string
	for name, l := range c.leases {
		if age := now.Sub(l.seen); age > c.limit {
			reasons = append(reasons, fmt.Sprintf("Lease %s was not renewed for %s", name, age.Round(time.Second)))
		} else if l.ahead {
			reasons = append(reasons, fmt.Sprintf("the renewal of Lease %s is ahead of the local clock, so it is unknown whether a controller still renews it", name))
		} else if l.unproven() {
			reasons = append(reasons, fmt.Sprintf("Lease %s was acquired, or renewed after an outage, a short time ago, and the controller may still be computing the budgets", name))
		}
	}
	slices.Sort(reasons)
	return strings.Join(reasons, "; ")
}
