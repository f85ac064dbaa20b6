package centre

import (
	"slices"
	"sync"
	"time"

	"github.com/breakwater-dev/breakwater/permission/centre/lifecycle"
)

// recordedLimiter records when calls are made: the time before the check that they are not late. The
// provider may receive more of them in a second, because on a busy machine some take longer to it than others.
type recordedLimiter struct {
	lifecycle.RateLimiter
	record func(time.Time)
}

// Expired implements lifecycle.RateLimiter.
func (l recordedLimiter) Expired(at time.Time) bool {
	now := time.Now()
	if l.RateLimiter.Expired(at) {
		return true
	}
	l.record(now)
	return false
}

// callTimes are the times of the calls of all replicas of a test.
type callTimes struct {
	mu    sync.Mutex
	times []time.Time
}

func (c *callTimes) add(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times = append(c.times, at)
}

// peak returns how many calls were made within one second.
func (c *callTimes) peak() (most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortFunc(c.times, time.Time.Compare)
	for first, last := 0, 0; last < len(c.times); last++ {
		for c.times[last].Sub(c.times[first]) >= time.Second {
			first++
		}
		most = max(most, last-first+1)
	}
	return most
}
