// Package eventstest provides a sender of events for tests, which records them.
package eventstest

import (
	"context"
	"slices"
	"sync"

	cloudevents "github.com/cloudevents/sdk-go/v2"
)

// Recorder replaces a delivery.Sender. It is safe for concurrent use, and its zero
// value accepts all events.
type Recorder struct {
	mu        sync.Mutex
	sent      []cloudevents.Event
	delivered []cloudevents.Event
	failure   error
}

// Send records the event.
func (r *Recorder) Send(_ context.Context, e cloudevents.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent = append(r.sent, e.Clone())
}

// Deliver records the event, or returns the error set by FailDeliveries.
func (r *Recorder) Deliver(ctx context.Context, e cloudevents.Event) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil {
		return r.failure
	}
	r.delivered = append(r.delivered, e.Clone())
	return nil
}

// FailDeliveries makes Deliver return err from now on; nil resets it.
func (r *Recorder) FailDeliveries(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failure = err
}

// Sent returns the events passed to Send, in order. If types are given, it returns
// only events of these types.
func (r *Recorder) Sent(types ...string) []cloudevents.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return filter(r.sent, types)
}

// Delivered returns the events that Deliver accepted, in order. If types are given,
// it returns only events of these types.
func (r *Recorder) Delivered(types ...string) []cloudevents.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return filter(r.delivered, types)
}

// Reset deletes the recorded events.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent, r.delivered = nil, nil
}

func filter(in []cloudevents.Event, types []string) []cloudevents.Event {
	var out []cloudevents.Event
	for _, e := range in {
		if len(types) == 0 || slices.Contains(types, e.Type()) {
			out = append(out, e.Clone())
		}
	}
	return out
}
