package budget

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// catchUp is how long the controller may need to compute all budgets after an outage.
const catchUp = 10 * time.Second

// ControllerLeases tells whether the controller computes budgets, from the renewals of
// its Leases. Pods that are lost while it does not are missing in the numbers, which
// would then allow too much. A write to each budget would prove more and cost more.
type ControllerLeases struct {
	clock clock.PassiveClock
	limit time.Duration

	mu     sync.Mutex
	leases map[string]lease
}

// lease is what is known of one Lease.
type lease struct {
	// renewed is the time that the controller wrote. The clocks of two nodes differ, so
	// it is compared with the time of this process only when this process starts.
	renewed time.Time
	// seen is when this process saw the last renewal.
	seen time.Time
	// trusted is when all budgets are computed again after an outage.
	trusted time.Time
}

// NewControllerLeases returns ControllerLeases of Leases with these names, by which
// budgets are stale when a Lease is not renewed within the limit.
func NewControllerLeases(now clock.PassiveClock, limit time.Duration, names ...string) *ControllerLeases {
	c := &ControllerLeases{clock: now, limit: limit, leases: map[string]lease{}}
	for _, name := range names {
		c.leases[name] = lease{seen: now.Now()}
	}
	return c
}

// Observe records that a Lease has a time of renewal.
func (c *ControllerLeases) Observe(name string, renewed time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.leases[name]
	if !ok || renewed.Equal(l.renewed) {
		return
	}
	now := c.clock.Now()
	switch first := l.renewed.IsZero(); {
	case first && renewed.Before(now):
		l.seen = renewed
	case now.Sub(l.seen) > c.limit:
		l.seen, l.trusted = now, now.Add(catchUp)
	default:
		l.seen = now
	}
	l.renewed = renewed
	c.leases[name] = l
}

// Stale says why the numbers of budgets may be old; it is empty if they are not. nil
// ControllerLeases do not bound their age.
func (c *ControllerLeases) Stale() string {
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
		} else if now.Before(l.trusted) {
			reasons = append(reasons, fmt.Sprintf("Lease %s is renewed again, and the budgets are computed", name))
		}
	}
	slices.Sort(reasons)
	return strings.Join(reasons, "; ")
}
