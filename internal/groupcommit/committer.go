package groupcommit

import (
	"context"
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Committer answers requests R about objects O with answers A.
type Committer[O metav1.Object, R, A any] struct {
	store   Store[O]
	decide  Decide[O, R, A]
	options Options

	mu     sync.Mutex
	queues map[types.NamespacedName]*queue[O, R, A]
}

// New returns a Committer.
func New[O metav1.Object, R, A any](store Store[O], decide Decide[O, R, A], options Options) *Committer[O, R, A] {
	return &Committer[O, R, A]{
		store: store, decide: decide, options: options.withDefaults(),
		queues: map[types.NamespacedName]*queue[O, R, A]{},
	}
}

// call is one waiting request. Its answer, error or panic is set before done is closed.
type call[R, A any] struct {
	ctx     context.Context
	request R
	answer  A
	err     error
	// panicked is the panic of the commit, or nil.
	panicked *Panic
	done     chan struct{}
}

// queue has the requests for one object. One group is committed at a time, while
// the next one is collected.
type queue[O metav1.Object, R, A any] struct {
	waiting []*call[R, A]
	running bool
	// arrived signals new requests; its capacity is 1.
	arrived chan struct{}
	// last is the object as last written. It saves a conflict while the cache lags; nothing
	// depends on it, because every write is a compare-and-swap.
	last    O
	written bool
	// size is the size of the last group.
	size int
}

// Do decides a request. The context should have the deadline of the caller. Do returns at about
// the deadline at the latest. If the deadline has passed when Do returns, the client of the caller
// ignores the answer, and the caller can undo the request.
//
// Do panics with a *Panic if the decision or the store did.
//
// Errors other than ErrDeadline and ErrQueueFull are those of the API server, such
// as NotFound.
func (c *Committer[O, R, A]) Do(ctx context.Context, key types.NamespacedName, request R) (A, error) {
	waits := &call[R, A]{ctx: ctx, request: request, done: make(chan struct{})}
	if !c.enqueue(key, waits) {
		return waits.answer, ErrQueueFull
	}
	<-waits.done
	if waits.panicked != nil {
		panic(waits.panicked)
	}
	return waits.answer, waits.err
}

func (c *Committer[O, R, A]) enqueue(key types.NamespacedName, waits *call[R, A]) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.queues[key]
	if l == nil {
		l = &queue[O, R, A]{arrived: make(chan struct{}, 1)}
		c.queues[key] = l
	}
	if len(l.waiting) >= c.options.MaxWaiting {
		return false
	}
	l.waiting = append(l.waiting, waits)
	select {
	case l.arrived <- struct{}{}:
	default:
	}
	if !l.running {
		l.running = true
		go c.run(key, l)
	}
	return true
}

// run commits groups until no request waits.
func (c *Committer[O, R, A]) run(key types.NamespacedName, l *queue[O, R, A]) {
	for {
		c.linger(l)
		group := c.takeGroup(l)
		if group == nil {
			return
		}
		newCommit(c, key, l, group).runAndEnd()
	}
}

// takeGroup returns the waiting requests, or ends the queue.
func (c *Committer[O, R, A]) takeGroup(l *queue[O, R, A]) []*call[R, A] {
	c.mu.Lock()
	defer c.mu.Unlock()
	group := l.waiting
	l.waiting, l.size = nil, len(group)
	if len(group) > 0 {
		return group
	}
	l.running = false
	c.dropIdle()
	return nil
}

// dropIdle deletes the idle queues that are of no use: the cache has the last written
// object, or does not have the object, because it was deleted. It is called when any queue
// runs empty, so the queues that stay are those of the objects that were written within
// the lag of the cache.
func (c *Committer[O, R, A]) dropIdle() {
	maps.DeleteFunc(c.queues, func(key types.NamespacedName, l *queue[O, R, A]) bool {
		if l.running {
			return false
		}
		cached, ok := c.store.Cached(key)
		return !ok || !l.written || !older(cached, l.last)
	})
}

// linger waits briefly for concurrent requests to join the group. It does not wait if
// there is a single request and the group before had one, and it ends when no further
// request arrives within maxGap.
func (c *Committer[O, R, A]) linger(l *queue[O, R, A]) {
	c.mu.Lock()
	waiting, before := len(l.waiting), l.size
	c.mu.Unlock()
	if waiting == 0 || (waiting == 1 && before <= 1) {
		return
	}
	end := time.NewTimer(maxWait)
	defer end.Stop()
	select { // drop the signal of a request that waits already
	case <-l.arrived:
	default:
	}
	for {
		gap := time.NewTimer(maxGap)
		select {
		case <-l.arrived:
			gap.Stop()
		case <-gap.C:
			return
		case <-end.C:
			gap.Stop()
			return
		}
	}
}
