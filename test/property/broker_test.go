package property

import (
	"context"
	"errors"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
)

// tries is how often a Trigger delivers before it hands on to deadletter.
const tries = 4

// letter is an event that the Broker has.
type letter struct {
	event event.Event
	// durable: its sender was told that it is accepted, so it may come late,
	// again and out of order, but it comes, or goes to deadletter.
	durable bool
	tried   int
}

// broker is the Broker and its Triggers.
type broker struct{ letters []*letter }

func (b *broker) accept(e cloudevents.Event, durable bool) *letter {
	l := &letter{event: e, durable: durable}
	b.letters = append(b.letters, l)
	return l
}

func (b *broker) take(at int) *letter {
	l := b.letters[at]
	b.letters = append(b.letters[:at:at], b.letters[at+1:]...)
	return l
}

// subscribers are the functions that get a type.
func subscriber(eventType string) string {
	switch eventType {
	case events.TypeChangePodReady, events.TypeChangeWorkloadStarted, events.TypeOrderReady:
		return "submit"
	case events.TypeChangePodVerdict, events.TypeOrderVerdict:
		return "verdict"
	default:
		return "" // function report, on which nothing depends
	}
}

// deliverEvent delivers a letter to its function. What could not be done comes
// again or, in the end, goes to deadletter.
func (w *world) deliverEvent(l *letter) {
	to := subscriber(l.event.Type())
	if to == "" {
		return
	}
	err := w.call(to, l.event)
	if functions.FateOf(err) == functions.FateDone {
		return
	}
	l.tried++
	if l.tried < tries && functions.FateOf(err) == functions.FateRetry {
		w.broker.letters = append(w.broker.letters, l)
		return
	}
	if !l.durable {
		return // shown on its object; its reconciler sends it again
	}
	if w.call("deadletter", l.event) != nil {
		l.tried = 0 // deadletter is tried for as long as it takes
		w.broker.letters = append(w.broker.letters, l)
	}
}

// errNotAccepted is a Broker that is away or slow.
var errNotAccepted = errors.New("the Broker did not answer")

// Deliver implements the callback's Deliverer.
func (w *world) Deliver(_ context.Context, e event.Event) error {
	switch w.draw("broker", 5) {
	case 4:
		return errNotAccepted
	case 3:
		w.broker.accept(e, false) // accepted, but nobody was told
		return errNotAccepted
	default:
		w.broker.accept(e, true)
		return nil
	}
}

// deliverSome delivers, doubles or loses one letter of the Broker.
func (w *world) deliverSome() bool {
	if len(w.broker.letters) == 0 {
		return false
	}
	at := w.draw("letter", len(w.broker.letters))
	switch w.draw("fate", 8) {
	case 7: // lost, unless its sender may rely on it
		if l := w.broker.letters[at]; !l.durable {
			w.broker.take(at)
		}
	case 6: // doubled
		copied := *w.broker.letters[at]
		copied.durable = false
		w.deliverEvent(&copied)
	default:
		w.deliverEvent(w.broker.take(at))
	}
	return true
}
