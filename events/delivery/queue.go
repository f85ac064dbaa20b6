package delivery

import (
	"container/list"
	"sync"
	"sync/atomic"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.opentelemetry.io/otel/trace"
)

// key is the identity of an event, as CloudEvents defines it.
type key struct{ source, id string }

// queued is an event with the span of its sender.
type queued struct {
	event cloudevents.Event
	span  trace.SpanContext
	// accepted is called when the Broker has accepted the event; nil for nothing.
	accepted func()
}

// addResult is the result of adding an event to a queue.
type addResult int

const (
	addQueued addResult = iota
	// addCoalesced: the event replaced a queued one of the same identity.
	addCoalesced
	// addClosed: the event was dropped because the sender stops.
	addClosed
)

// queue holds at most limit events in FIFO order, at most one of an identity. An
// event stays queued while another one of its identity is being sent, so that
// repetitions of one event never occupy two workers. It is not dropped: the receiver
// of the first event may have read the object too early for the second.
//
// A full queue drops its oldest event. The sender of an event on which something
// depends sends it again, and the oldest is the first that is due again.
type queue struct {
	limit int
	// full is set while the queue drops events, so that this is logged once.
	full atomic.Bool

	mu sync.Mutex
	// changed is signaled when order gets an element and when the queue closes.
	changed *sync.Cond
	events  map[key]queued
	// order has the keys of events that are not being sent, the oldest first.
	order *list.List
	// elements are the elements of order.
	elements map[key]*list.Element
	// sending are the keys that next returned and that are not done.
	sending map[key]bool
	closed  bool
}

func newQueue(limit int) *queue {
	q := &queue{
		limit: limit, events: map[key]queued{}, order: list.New(),
		elements: map[key]*list.Element{}, sending: map[key]bool{},
	}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// add adds an event. It returns the event that a full queue dropped for it, or nil.
func (q *queue) add(e queued) (addResult, *queued) {
	k := key{e.event.Source(), e.event.ID()}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return addClosed, nil
	}
	if old, found := q.events[k]; found {
		if e.accepted == nil {
			e.accepted = old.accepted
		}
		q.events[k] = e
		return addCoalesced, nil
	}
	var dropped *queued
	if len(q.events) >= q.limit {
		dropped = q.dropOldest()
	}
	q.events[k] = e
	if !q.sending[k] {
		q.push(k)
	}
	return addQueued, dropped
}

// push adds a key to the order.
func (q *queue) push(k key) {
	q.elements[k] = q.order.PushBack(k)
	q.changed.Signal()
}

// pop removes the oldest key from the order.
func (q *queue) pop() key {
	k := q.order.Remove(q.order.Front()).(key)
	delete(q.elements, k)
	return k
}

// dropOldest removes the oldest event. It returns nil if workers are sending all
// events; the number of workers is limited.
func (q *queue) dropOldest() *queued {
	if q.order.Len() == 0 {
		return nil
	}
	k := q.pop()
	e := q.events[k]
	delete(q.events, k)
	return &e
}

// next waits for the next identity to send, and returns false if the queue is
// closed and empty. The caller must call done with each identity.
func (q *queue) next() (key, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.order.Len() == 0 {
		if q.closed && len(q.events) == 0 {
			return key{}, false
		}
		q.changed.Wait()
	}
	k := q.pop()
	q.sending[k] = true
	return k, true
}

// take removes and returns the newest event of an identity that next returned.
func (q *queue) take(k key) queued {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.events[k]
	delete(q.events, k)
	return e
}

// done ends the sending of an identity. An event that was added meanwhile is next.
func (q *queue) done(k key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.sending, k)
	if _, found := q.events[k]; found {
		q.push(k)
	}
	if q.closed {
		q.changed.Broadcast()
	}
}

func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.events)
}

// close makes add reject events; next still returns the queued ones.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Broadcast()
}
