package finalizer

import (
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// moment is how long a process that has just begun goes on trying what should
// have been done before.
const minRetryPeriod = 30 * time.Second

// Fate is what becomes of a pod's finalizer.
type FinalizerAction string

// The fates.
const (
	// Release: nothing that was granted is left, or nothing can be taken back;
	// the finalizer goes.
	RemoveFinalizer FinalizerAction = "RemoveFinalizer"
	// Retry: not yet.
	Retry FinalizerAction = "Retry"
	// GiveUp: the deadline is over; the finalizer goes, and the leak is told.
	GiveUp FinalizerAction = "GiveUp"
)

// Proof is what the centre said of a pod's applications.
type CentreState struct {
	// Err: it could not be asked.
	Err          error
	Applications []api.Application
}

// Settlement is the fate and why.
type Revocation struct {
	Action FinalizerAction
	// Revoked and Leaked are the applications that ended so.
	Revoked, Leaked []api.Application
	// Open are those that have not ended.
	Unfinished []api.Application
}

// Deadline is when a pod that has ended is let go. It counts from when the pod
// ended, but not from before this process looked for the first time: each pod is
// tried for a moment at least.
func Deadline(ended, seen time.Time, patience time.Duration) time.Time {
	if ended.IsZero() || ended.After(seen) {
		ended = seen
	}
	deadline := ended.Add(patience)
	if least := seen.Add(min(minRetryPeriod, patience)); deadline.Before(least) {
		deadline = least
	}
	return deadline
}

// Settle says what becomes of the finalizer of a pod that has ended.
func DecideRevocation(p CentreState, now, deadline time.Time) Revocation {
	var s Revocation
	for _, app := range p.Applications {
		switch app.State {
		case api.Revoked:
			s.Revoked = append(s.Revoked, app)
		case api.Leaked:
			s.Leaked = append(s.Leaked, app)
		default:
			s.Unfinished = append(s.Unfinished, app)
		}
	}
	switch {
	case p.Err == nil && len(s.Unfinished) == 0:
		s.Action = RemoveFinalizer
	case !now.Before(deadline):
		s.Action = GiveUp
	default:
		s.Action = Retry
	}
	return s
}
