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
	// waiting items.
	Size, Runs, Waiting int
	// Timeout bounds a run. The context of a run does not end with those of its callers.
	Timeout time.Duration
}

// Queue collects items for runs. The zero value is ready to use.
type Queue[T any] struct {
	mu      sync.Mutex
	waiting []*call[T]
	running int
}

// call is an item. err is set before done is closed.
type call[T any] struct {
	ctx  context.Context
	item T
	err  error
	done chan struct{}
}

// Do passes an item to run, with those of other callers, and returns when the run has ended.
// If ctx ends while the item waits, Do returns its error at once, and the item is not run.
func (q *Queue[T]) Do(ctx context.Context, limits Limits, item T, run func(context.Context, []T)) error {
	c := &call[T]{ctx: ctx, item: item, done: make(chan struct{})}
	if !q.add(c, limits, run) {
		return ErrFull
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		if q.remove(c) {
			return ctx.Err()
		}
		<-c.done
		return c.err
	}
}

func (q *Queue[T]) add(c *call[T], limits Limits, run func(context.Context, []T)) bool {
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
func (q *Queue[T]) runAll(limits Limits, run func(context.Context, []T)) {
	for {
		calls := q.next(limits.Size)
		if len(calls) == 0 {
			return
		}
		err := runOne(calls, limits.Timeout, run)
		for _, c := range calls {
			c.err = err
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
func runOne[T any](calls []*call[T], timeout time.Duration, run func(context.Context, []T)) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a batch: %v\n%s", p, debug.Stack())
		}
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(calls[0].ctx), timeout)
	defer cancel()
	items := make([]T, len(calls))
	for i, c := range calls {
		items[i] = c.item
	}
	run(ctx, items)
	return nil
}
