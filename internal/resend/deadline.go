package resend

import (
	"sync"
	"time"
)

// StartTime knows when a process began to decide. A process that does not lead
// decides nothing, so what ended before that ended while nobody woke anybody.
type StartTime struct {
	once  sync.Once
	first time.Time
}

// Get returns the time of the first call.
func (s *StartTime) Get(now time.Time) time.Time {
	s.once.Do(func() { s.first = now })
	return s.first
}

// ExtendDeadline returns when something that was to end at a time ends: a process that
// has just begun to decide (up) gives it a moment for its wake-up. A clock that
// was set back gives no time.
func ExtendDeadline(end, up, now time.Time, moment time.Duration) time.Time {
	if given := up.Add(moment); !up.After(now) && given.After(end) {
		return given
	}
	return end
}
