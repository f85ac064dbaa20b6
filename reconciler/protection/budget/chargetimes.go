package budget

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
)

// chargeTimes records since when each charge is known, in memory only: a new leader
// starts again, which may keep a charge longer but never shorter.
type chargeTimes struct {
	clock clock.PassiveClock
	// expiry is how long a charge without an effect is kept: --charge-timeout plus
	// budget.RepeatedTTL. The charge of a restart is kept for restartGrace in addition.
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
// grace has, by charge, a duration that is added to its expiry.
func (c *chargeTimes) observe(b *v1alpha1.PodUnavailableBudget, grace map[string]time.Duration) (expired func(string) bool, next time.Duration) {
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
		if left := at.Add(c.expiry + grace[key]).Sub(now); left > 0 && (next == 0 || left < next) {
			next = left
		}
	}
	delete(c.since, name)
	maps.DeleteFunc(c.settledSince[name], func(key string, _ time.Time) bool { _, ok := after[key]; return !ok })
	if len(after) > 0 {
		c.since[name] = after
	}
	return func(key string) bool {
		at, ok := after[key]
		return ok && now.Sub(at) >= c.expiry+grace[key]
	}, next
}

// maxGrace limits the grace period of a pod, which the API server does not limit.
const maxGrace = 24 * time.Hour

// restartGrace returns the grace periods of the pods whose containers OpenKruise restarts, by their
// charges. The container may be Ready until its end, and the spec does not show that it stops.
func restartGrace(b *v1alpha1.PodUnavailableBudget, pods corelisters.PodLister) map[string]time.Duration {
	grace := map[string]time.Duration{}
	for name, value := range b.Status.UnavailablePods {
		e := budget.ParseEntry(value)
		if !e.Restarts() {
			continue
		}
		p, err := pods.Pods(b.Namespace).Get(name)
		if err == nil && p.UID == e.UID && p.Spec.TerminationGracePeriodSeconds != nil {
			grace[budget.ChangedKey(name, e)] = time.Duration(min(*p.Spec.TerminationGracePeriodSeconds, int64(maxGrace/time.Second))) * time.Second
		}
	}
	return grace
}

// forget deletes the records of a budget.
func (c *chargeTimes) forget(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.since, name)
	delete(c.settledSince, name)
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
