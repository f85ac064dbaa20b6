// Package batch lets concurrent callers share one run, for example a transaction. Nobody
// waits for more callers: a run gets the items that arrived during earlier runs.
package batch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// ErrFull is the error of an item that was not run, because too many wait.
var ErrFull = errors.New("too many requests wait for the store")

// Limits bound a Queue.
type Limits struct {
	// Size is the number of items of a run, Runs that of concurrent runs, and Waiting that of
	// waiting items. Alone is the number of concurrent runs of single items that follow runs
	// that failed.
	Size, Runs, Waiting, Alone int
	// Timeout bounds a run. The context of a run does not end with those of its callers, but at
	// the latest of their deadlines.
	Timeout time.Duration
}

// Queue collects items for runs. The zero value is ready to use.
type Queue[T any] struct {
	mu      sync.Mutex
	waiting []*call[T]
	running int
	// alone has the items of runs that failed; nil if there were none.
	alone *Queue[T]
}

// Run runs items. It returns true if each of them is to be run again, alone, because an item
// may have failed those of other callers. A run of an item alone is the last one.
type Run[T any] func(context.Context, []T) (again bool)

// call is an item. again and err are set before done is closed.
type call[T any] struct {
	ctx   context.Context
	item  T
	again bool
	err   error
	done  chan struct{}
}

// Do passes an item to run, with those of other callers, and returns when the run has ended.
// If ctx ends while the item waits, Do returns its error at once, and the item is not run.
func (q *Queue[T]) Do(ctx context.Context, limits Limits, item T, run Run[T]) error {
	again, err := q.do(ctx, limits, item, run)
	if !again || err != nil {
		return err
	}
	// The other runs go on: an item alone may wait for a long time.
	limits.Size, limits.Runs = 1, max(1, limits.Alone)
	_, err = q.queueAlone().do(ctx, limits, item, run)
	return err
}

func (q *Queue[T]) queueAlone() *Queue[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.alone == nil {
		q.alone = &Queue[T]{}
	}
	return q.alone
}

func (q *Queue[T]) do(ctx context.Context, limits Limits, item T, run Run[T]) (again bool, err error) {
	c := &call[T]{ctx: ctx, item: item, done: make(chan struct{})}
	if !q.add(c, limits, run) {
		return false, ErrFull
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		if q.remove(c) {
			return false, ctx.Err()
		}
		<-c.done
	}
	return c.again, c.err
}

func (q *Queue[T]) add(c *call[T], limits Limits, run Run[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= limits.Waiting {
		return false
	}
	q.waiting = append(q.waiting, c)
	if q.running < limits.Runs {
		q.running++
		go q.runAll(limits, run)
	}
	return true
}

// remove removes an item that waits.
func (q *Queue[T]) remove(c *call[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, c)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}

// runAll runs batches until no item waits.
func (q *Queue[T]) runAll(limits Limits, run Run[T]) {
	for {
		calls := q.next(limits.Size)
		if len(calls) == 0 {
			return
		}
		again, err := runOne(calls, limits.Timeout, run)
		for _, c := range calls {
			c.again, c.err = again, err
			close(c.done)
		}
	}
}

// next removes the oldest items. If there are none, the caller must not run any more.
func (q *Queue[T]) next(size int) []*call[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(size, len(q.waiting))
	if n == 0 {
		q.running--
		return nil
	}
	calls := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return calls
}

// runOne runs a batch. A panic must not end the process, nor leave callers waiting.
func runOne[T any](calls []*call[T], timeout time.Duration, run Run[T]) (again bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a batch: %v\n%s", p, debug.Stack())
		}
	}()
	end := time.Now().Add(timeout)
	if latest := latestDeadline(calls); !latest.IsZero() && latest.Before(end) {
		end = latest
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(calls[0].ctx), end)
	defer cancel()
	items := make([]T, len(calls))
	for i, c := range calls {
		items[i] = c.item
	}
	return run(ctx, items), nil
}

// latestDeadline returns the latest deadline of the callers; zero if one has none.
func latestDeadline[T any](calls []*call[T]) (latest time.Time) {
	for _, c := range calls {
		deadline, ok := c.ctx.Deadline()
		if !ok {
			return time.Time{}
		}
		if deadline.After(latest) {
			latest = deadline
		}
	}
	return latest
}
