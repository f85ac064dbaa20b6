// Package coalesce processes the items of concurrent callers together, for example in one transaction.
// Nobody waits for more callers: a group has the items that arrived while earlier groups were processed.
package coalesce

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// ErrFull is the error of an item that was not processed, because too many wait.
var ErrFull = errors.New("too many requests wait for the store")

// Limits bound a Queue.
type Limits struct {
	// Size is the maximum number of items of a group.
	Size int
	// Groups is the maximum number of groups in progress.
	Groups int
	// Waiting is the maximum number of waiting items.
	Waiting int
	// Alone is the maximum number of items in progress that are processed alone, after their group
	// failed.
	Alone int
	// Timeout is the maximum time of a group. The end of one caller's context does not end the group;
	// the last deadline of its callers does.
	Timeout time.Duration
}

// Queue collects items for groups. The zero value is ready to use.
type Queue[T any] struct {
	mu         sync.Mutex
	waiting    []*call[T]
	processing int // groups
	// alone has the items of groups that failed; nil if there were none.
	alone *Queue[T]
}

// Process processes a group. It returns true if each item is to be processed again, alone, because an
// item may have failed those of other callers. Alone, an item is processed once.
type Process[T any] func(context.Context, []T) (again bool)

// call is an item. again and err are set before done is closed.
type call[T any] struct {
	ctx   context.Context
	item  T
	again bool
	err   error
	done  chan struct{}
}

// Do processes an item, with those of other callers, and returns when its group is processed.
// If ctx ends while the item waits, Do returns its error at once, and the item is not processed.
func (q *Queue[T]) Do(ctx context.Context, limits Limits, item T, process Process[T]) error {
	again, err := q.do(ctx, limits, item, process)
	if !again || err != nil {
		return err
	}
	// Other groups do not wait: an item alone may wait for a long time.
	limits.Size, limits.Groups = 1, max(1, limits.Alone)
	_, err = q.queueAlone().do(ctx, limits, item, process)
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

func (q *Queue[T]) do(ctx context.Context, limits Limits, item T, process Process[T]) (again bool, err error) {
	c := &call[T]{ctx: ctx, item: item, done: make(chan struct{})}
	if !q.add(c, limits, process) {
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

func (q *Queue[T]) add(c *call[T], limits Limits, process Process[T]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= limits.Waiting {
		return false
	}
	q.waiting = append(q.waiting, c)
	if q.processing < limits.Groups {
		q.processing++
		go q.processAll(limits, process)
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

// processAll processes groups until no item waits.
func (q *Queue[T]) processAll(limits Limits, process Process[T]) {
	for {
		calls := q.next(limits.Size)
		if len(calls) == 0 {
			return
		}
		again, err := processGroup(calls, limits.Timeout, process)
		for _, c := range calls {
			c.again, c.err = again, err
			close(c.done)
		}
	}
}

// next removes the oldest items. If there are none, the caller must not process any more.
func (q *Queue[T]) next(size int) []*call[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(size, len(q.waiting))
	if n == 0 {
		q.processing--
		return nil
	}
	calls := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return calls
}

// processGroup processes a group. A panic must not end the process, nor leave callers waiting.
func processGroup[T any](calls []*call[T], timeout time.Duration, process Process[T]) (again bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a group: %v\n%s", p, debug.Stack())
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
	return process(ctx, items), nil
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
