package budget

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/apis/policy/budget"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// charges remembers since when each charge is known. In memory only: who begins
// anew waits anew, which keeps a charge for longer and never for less.
type charges struct {
	clock clock.PassiveClock
	// kept is how long one is kept whose pod does not change: as long as the API
	// server may work on a request.
	kept time.Duration

	mu    sync.Mutex
	since map[types.NamespacedName]map[string]time.Time
}

func newCharges(c clock.PassiveClock, kept time.Duration) *charges {
	return &charges{clock: c, kept: kept, since: map[types.NamespacedName]map[string]time.Time{}}
}

// see notes the charges of a budget and forgets those that it has no more. It
// returns whether one has expired, and when the next does; 0 for none.
func (c *charges) see(b *v1alpha1.PodUnavailableBudget) (expired func(string) bool, next time.Duration) {
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
		if left := at.Add(c.kept).Sub(now); left > 0 && (next == 0 || left < next) {
			next = left
		}
	}
	delete(c.since, name)
	if len(after) > 0 {
		c.since[name] = after
	}
	return func(key string) bool {
		at, ok := after[key]
		return ok && now.Sub(at) >= c.kept
	}, next
}

// forget drops what is known of a budget.
func (c *charges) forget(name types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.since, name)
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
