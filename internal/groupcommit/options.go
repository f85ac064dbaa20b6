package groupcommit

import (
	"cmp"
	"errors"
	"time"
)

// Errors of requests that were not decided.
var (
	// ErrDeadline: too little of the request's time was left for an answer. After a
	// write with unknown outcome the request may have been written: undo it.
	ErrDeadline = errors.New("there was not enough time left to decide")
	// ErrQueueFull: too many requests wait for the same object. Nothing was written.
	ErrQueueFull = errors.New("too many requests wait for a decision")
)

// Options of a Committer; zero values select the defaults.
type Options struct {
	// Margin is how much time a request needs when a commit begins. Default: 500 ms.
	Margin time.Duration
	// MaxWaiting is how many requests may wait for one object. Default: 5000.
	MaxWaiting int
	// ReturnErrors: any error of the API server but a conflict ends the group, because the callers
	// retry themselves. Otherwise transient errors are retried until the deadlines.
	ReturnErrors bool
	// Observe, if set, is called when a group ends.
	Observe func(Stats)
}

// Stats describes the commit of a group.
type Stats struct {
	// Size is the number of requests.
	Size int
	// Written reports whether the object was written.
	Written bool
	// Conflicts is the number of writes that failed with a conflict.
	Conflicts int
	// Reads is the number of live reads.
	Reads int
}

const (
	// maxWait is the longest time that a group waits for more requests.
	maxWait = 20 * time.Millisecond
	// maxGap ends this wait earlier: when no request arrives within it.
	maxGap = 4 * time.Millisecond
	// retryPause is how long to wait after a transient error.
	retryPause = 25 * time.Millisecond
)

func (o Options) withDefaults() Options {
	o.Margin = cmp.Or(o.Margin, 500*time.Millisecond)
	o.MaxWaiting = cmp.Or(o.MaxWaiting, 5000)
	if o.Observe == nil {
		o.Observe = func(Stats) {}
	}
	return o
}
