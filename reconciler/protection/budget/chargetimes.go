package budget

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/deadline"
)

// chargeTimes records since when each charge is known, in memory only: a new leader
// starts again, which may keep a charge longer but never shorter.
type chargeTimes struct {
	clock clock.PassiveClock
	// expiry is how long a charge without an effect is kept: --charge-timeout plus
	// budget.RepeatedTTL. The charge of a restart is kept for its Entry.Grace in addition.
	expiry time.Duration

	mu    sync.Mutex
	since map[types.NamespacedName]map[string]time.Time
	// settledSince records since when the outcome of each charge of a deletion is known: the
	// pod is terminating, completed, deleted, or not covered any more.
	settledSince map[types.NamespacedName]map[string]time.Time
}

// settledRetention is how long the charge of a deletion is kept after its outcome is known; see
// Observed.KeepSettled.
const settledRetention = 500 * time.Millisecond

func newChargeTimes(c clock.PassiveClock, chargeTimeout time.Duration) *chargeTimes {
	return &chargeTimes{clock: c, expiry: chargeTimeout + budget.RepeatedTTL,
		since: map[types.NamespacedName]map[string]time.Time{}, settledSince: map[types.NamespacedName]map[string]time.Time{}}
}

// keepSettled reports whether the charge of a deletion whose outcome is known is kept.
func (c *chargeTimes) keepSettled(name types.NamespacedName, key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	if c.settledSince[name] == nil {
		c.settledSince[name] = map[string]time.Time{}
	}
	at, ok := c.settledSince[name][key]
	if !ok {
		c.settledSince[name][key], at = now, now
	}
	return now.Sub(at) < settledRetention
}

// observe records the charges of a budget and forgets removed ones. It returns a function that
// reports whether a charge has expired, and the time until the next charge expires; 0 for none.
func (c *chargeTimes) observe(b *v1alpha1.PodUnavailableBudget) (expired func(string) bool, next time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, now := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}, c.clock.Now()
	before, after, graces := c.since[name], map[string]time.Time{}, gracesOf(b)
	for key, grace := range graces {
		at, ok := before[key]
		if !ok {
			at = now
		}
		after[key] = at
		if left := at.Add(c.expiry + grace).Sub(now); left > 0 {
			next = deadline.ShorterWait(next, left)
		}
	}
	delete(c.since, name)
	maps.DeleteFunc(c.settledSince[name], func(key string, _ time.Time) bool { _, ok := after[key]; return !ok })
	if len(after) > 0 {
		c.since[name] = after
	}
	return func(key string) bool {
		at, ok := after[key]
		return ok && now.Sub(at) >= c.expiry+graces[key]
	}, next
}

// forget deletes the records of a budget.
func (c *chargeTimes) forget(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.since, name)
	delete(c.settledSince, name)
}

// gracesOf returns the keys of all charges, each with the duration that is added to its expiry.
func gracesOf(b *v1alpha1.PodUnavailableBudget) map[string]time.Duration {
	graces := map[string]time.Duration{}
	for uid, rv := range b.Status.DeletedPods {
		graces[budget.DeletedKey(uid, rv)] = 0
	}
	for name, value := range b.Status.UnavailablePods {
		e := budget.ParseEntry(value)
		graces[budget.ChangedKey(name, e)] = e.Grace()
	}
	return graces
}
