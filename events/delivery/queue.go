package delivery

import (
	"sync"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/util/workqueue"
)

// key is what CloudEvents calls the identity of an event.
type key struct{ source, id string }

// waiting is an event with the span that it belongs to.
type waiting struct {
	event cloudevents.Event
	span  trace.SpanContext
}

// put says what became of an event that was put into a queue.
type put int

const (
	putAdded put = iota
	// putCoalesced: an event of the same identity waited and was replaced.
	putCoalesced
	// putFull: the event was left out.
	putFull
	// putClosed: the event was left out, the sender ends.
	putClosed
)

// queue holds at most limit events, one of an identity, in the order in which
// they came. An event whose identity is being sent right now waits until that
// is over: one object never occupies two workers, and who reads the object for
// the first event may have read it too early for the second.
//
// A full queue leaves out the newest. All that reconcilers wait for they send
// again until it has happened, so nothing is lost by it; the oldest has waited
// longest and its deadline is next.
type queue struct {
	limit int
	order workqueue.TypedInterface[key]

	mu     sync.Mutex
	events map[key]waiting
}

func newQueue(limit int) *queue {
	return &queue{
		limit:  limit,
		order:  workqueue.NewTyped[key](),
		events: make(map[key]waiting),
	}
}

func (q *queue) add(w waiting) put {
	k := key{w.event.Source(), w.event.ID()}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.order.ShuttingDown() {
		return putClosed
	}
	_, known := q.events[k]
	if !known && len(q.events) >= q.limit {
		return putFull
	}
	q.events[k] = w
	q.order.Add(k)
	if known {
		return putCoalesced
	}
	return putAdded
}

// next waits for an identity whose event is to be sent. It returns false when
// the queue was closed and is empty. Each identity that it returns is handed
// back with done.
func (q *queue) next() (key, bool) {
	k, closed := q.order.Get()
	return k, !closed
}

// take removes the event: the newest of its identity. There is none when the
// event that came between next and take was taken the time before.
func (q *queue) take(k key) (waiting, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w, ok := q.events[k]
	delete(q.events, k)
	return w, ok
}

func (q *queue) done(k key) { q.order.Done(k) }

func (q *queue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.events)
}

// close ends add; next still hands out what is there.
func (q *queue) close() { q.order.ShutDown() }
