package budget

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

// chargeTimes records since when each charge is known, in memory only: a new leader
// starts again, which may keep a charge longer but never shorter.
type chargeTimes struct {
	clock clock.PassiveClock
	// timeout is how long a charge without an effect is kept. It is at least the
	// request timeout of the API server and budget.RepeatedTTL.
	timeout time.Duration

	mu    sync.Mutex
	since map[types.NamespacedName]map[string]time.Time
	// gone records since when the pod of each charge is gone.
	gone map[types.NamespacedName]map[string]time.Time
}

// goneRetention is how long the charge of a pod that is gone is kept; see Observed.KeepGone.
const goneRetention = 500 * time.Millisecond

func newChargeTimes(c clock.PassiveClock, kept time.Duration) *chargeTimes {
	return &chargeTimes{clock: c, timeout: kept + budget.RepeatedTTL,
		since: map[types.NamespacedName]map[string]time.Time{}, gone: map[types.NamespacedName]map[string]time.Time{}}
}

// keepGone reports whether the charge of a pod that is gone is kept.
func (c *chargeTimes) keepGone(name types.NamespacedName, key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.clock.Now()
	if c.gone[name] == nil {
		c.gone[name] = map[string]time.Time{}
	}
	at, ok := c.gone[name][key]
	if !ok {
		c.gone[name][key], at = now, now
	}
	return now.Sub(at) < goneRetention
}

// observe records the charges of a budget and forgets removed ones. It returns a function that
// reports whether a charge has expired, and the time until the next charge expires; 0 for none.
func (c *chargeTimes) observe(b *v1alpha1.PodUnavailableBudget) (expired func(string) bool, next time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, now := types.NamespacedName{Namespace: b.Namespace, Name: b.Name}, c.clock.Now()
	before, after := c.since[name], map[string]time.Time{}
	for _, key := range keysOf(b) {
		at, ok := before[key]
		if !ok {
			at = now
		}
		after[key] = at
		if left := at.Add(c.timeout).Sub(now); left > 0 && (next == 0 || left < next) {
			next = left
		}
	}
	delete(c.since, name)
	maps.DeleteFunc(c.gone[name], func(key string, _ time.Time) bool { _, ok := after[key]; return !ok })
	if len(after) > 0 {
		c.since[name] = after
	}
	return func(key string) bool {
		at, ok := after[key]
		return ok && now.Sub(at) >= c.timeout
	}, next
}

// forget deletes the records of a budget.
func (c *chargeTimes) forget(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.since, name)
	delete(c.gone, name)
}

func keysOf(b *v1alpha1.PodUnavailableBudget) []string {
	var keys []string
	for uid, rv := range b.Status.DeletedPods {
		keys = append(keys, budget.DeletedKey(uid, rv))
	}
	for name, value := range b.Status.UnavailablePods {
		keys = append(keys, budget.ChangedKey(name, budget.ParseEntry(value)))
	}
	return keys
}
