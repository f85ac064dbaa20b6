package delivery

import (
	"sync"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/util/workqueue"
)

// key is the identity of an event, as CloudEvents defines it.
type key struct{ source, id string }

// queued is an event with the span of its sender.
type queued struct {
	event cloudevents.Event
	span  trace.SpanContext
}

// addResult is the result of adding an event to a queue.
type addResult int

const (
	addQueued addResult = iota
	// addCoalesced: the event replaced a queued one of the same identity.
	addCoalesced
	// addFull: the event was dropped because the queue is full.
	addFull
	// addClosed: the event was dropped because the sender stops.
	addClosed
)

// queue holds at most limit events in FIFO order, at most one of an identity. An
// event stays queued while another one of its identity is being sent: an object
// never occupies two workers, and the receiver of the first event may have read
// the object too early for the second.
//
// A full queue drops the newest event, because the deadline of the oldest is the
// nearest. Reconcilers repeat the wake-ups that they depend on, so none is lost.
type queue struct {
	limit int
	order workqueue.TypedInterface[key]

	mu     sync.Mutex
	events map[key]queued
}

func newQueue(limit int) *queue {
	return &queue{
		limit:  limit,
		order:  workqueue.NewTyped[key](),
		events: make(map[key]queued),
	}
}

func (q *queue) add(e queued) addResult {
	k := key{e.event.Source(), e.event.ID()}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.order.ShuttingDown() {
		return addClosed
	}
	_, found := q.events[k]
	if !found && len(q.events) >= q.limit {
		return addFull
	}
	q.events[k] = e
	q.order.Add(k)
	if found {
		return addCoalesced
	}
	return addQueued
}

// next waits for the next identity to send, and returns false if the queue is
// closed and empty. The caller must call done with each identity.
func (q *queue) next() (key, bool) {
	k, closed := q.order.Get()
	return k, !closed
}

// take removes and returns the newest event of the identity. It returns false if
// an earlier take already returned it: an event that is added between next and
// take queues its identity once more.
func (q *queue) take(k key) (queued, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e, ok := q.events[k]
	delete(q.events, k)
	return e, ok
}

func (q *queue) done(k key) { q.order.Done(k) }

func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.events)
}

// close makes add reject events; next still returns the queued ones.
func (q *queue) close() { q.order.ShutDown() }
