// Package eventstest has a sender for tests that keeps what it is given.
package eventstest

import (
	"context"
	"slices"
	"sync"

	cloudevents "github.com/cloudevents/sdk-go/v2"
)

// Recorder stands in for an delivery.Sender and may be used by many goroutines.
// Its zero value accepts everything.
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

// Deliver records the event, unless it was told to fail.
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

// FailDeliveries makes Deliver return err from now on; nil ends that.
func (r *Recorder) FailDeliveries(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failure = err
}

// Sent returns what Send was given, in its order; with types, only of these.
func (r *Recorder) Sent(types ...string) []cloudevents.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return filter(r.sent, types)
}

// Delivered returns what Deliver accepted, in its order; with types, only of these.
func (r *Recorder) Delivered(types ...string) []cloudevents.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return filter(r.delivered, types)
}

// Reset forgets what was recorded.
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
