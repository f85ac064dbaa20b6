package groupcommit

import (
	"errors"
	"time"
)

// What a request is told that was not decided.
var (
	// ErrLate: so little of the request's time was left that its answer would
	// have come after the asker had gone. After a write of unknown outcome
	// something of it may be written: take it back.
	ErrDeadline = errors.New("there was not enough time left to decide")
	// ErrFull: too many requests wait for the same object. Nothing was written.
	ErrQueueFull = errors.New("too many requests wait for a decision")
)

// Options tune a Committer; the zero value is what Breakwater uses.
type Options struct {
	// Linger is how long a group waits at most for more requests.
	Linger time.Duration
	// Gap is how long it waits for the next one.
	Gap time.Duration
	// Margin is what has to be left of a request's time when a commit begins.
	Margin time.Duration
	// Waiting is how many requests may wait for one object.
	MaxWaiting int
	// Pause is how long to wait after an error that may pass.
	RetryPause time.Duration
	// Observe, if set, is told of each group when it ends.
	Observe func(Outcome)
}

// Outcome is what became of a group.
type Outcome struct {
	// Size is how many requests it had.
	Size int
	// Written says whether something was written.
	Written bool
	// Conflicts is how many writes came too late.
	Conflicts int
	// Reads is how many live reads it took.
	Reads int
}

const (
	defaultLinger     = 20 * time.Millisecond
	defaultGap        = 4 * time.Millisecond
	defaultMargin     = 500 * time.Millisecond
	defaultMaxWaiting = 5000
	defaultRetryPause = 25 * time.Millisecond
)

func (o Options) withDefaults() Options {
	set := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	set(&o.Linger, defaultLinger)
	set(&o.Gap, defaultGap)
	set(&o.Margin, defaultMargin)
	set(&o.RetryPause, defaultRetryPause)
	if o.MaxWaiting == 0 {
		o.MaxWaiting = defaultMaxWaiting
	}
	if o.Observe == nil {
		o.Observe = func(Outcome) {}
	}
	return o
}
