package resend

import (
	"sync"
	"time"
)

// DecidingSince is the time of the first decision of a process, not of its start. A process
// that leads no bucket makes no decisions: a deadline before its DecidingSince may have
// expired because no leader sent a wake-up. A process that leads a bucket and takes over
// another one keeps its DecidingSince.
type DecidingSince struct {
	once  sync.Once
	first time.Time
}

// Get returns the time of its first call.
func (s *DecidingSince) Get(now time.Time) time.Time {
	s.once.Do(func() { s.first = now })
	return s.first
}

// ExtendDeadline extends a deadline to at least the grace period after the
// process began to decide, so that it can send a wake-up first. A clock
// that was set back extends nothing.
func ExtendDeadline(end, decidingSince, now time.Time, grace time.Duration) time.Time {
	if extended := decidingSince.Add(grace); !decidingSince.After(now) && extended.After(end) {
		return extended
	}
	return end
}
