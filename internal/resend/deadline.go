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

// RetrieveGrace is how long a stage waits for a verdict after its timeout: function submit asks the
// server in that time.
const RetrieveGrace = 15 * time.Second

// EndOfStage returns when a stage ends without a verdict. After timeout the server is asked once more if
// it accepted the call, and a new process waits as long before it decides.
func EndOfStage(timeout time.Time, accepted bool, decidingSince, now time.Time) time.Time {
	end := timeout
	if accepted {
		end = end.Add(RetrieveGrace)
	}
	return ExtendDeadline(end, decidingSince, now, RetrieveGrace)
}
