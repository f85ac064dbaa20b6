package property

import (
	"context"
	"errors"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/functions"
)

// maxDeliveries is the number of attempts of a Trigger before it sends an event
// to deadletter.
const maxDeliveries = 4

// delivery is an event in the Broker.
type delivery struct {
	event event.Event
	// durable: the Broker confirmed the event, so it is delivered, or sent to
	// deadletter; it may be late, duplicate and out of order.
	durable bool
	tried   int
}

// broker is the Broker and its Triggers.
type broker struct{ deliveries []*delivery }

func (b *broker) accept(e cloudevents.Event, durable bool) *delivery {
	l := &delivery{event: e, durable: durable}
	b.deliveries = append(b.deliveries, l)
	return l
}

func (b *broker) take(at int) *delivery {
	l := b.deliveries[at]
	b.deliveries = append(b.deliveries[:at:at], b.deliveries[at+1:]...)
	return l
}

// subscriber returns the function that receives an event type.
func subscriber(eventType string) string {
	switch eventType {
	case events.TypeChangePodReady, events.TypeChangeWorkloadStarted, events.TypeOrderReady:
		return "submit"
	case events.TypeChangePodVerdict, events.TypeOrderVerdict:
		return "verdict"
	default:
		return "" // function report, which has no effect on the invariants
	}
}

// deliverEvent delivers an event to its function. A failed delivery is repeated and
// in the end sent to deadletter.
func (w *fixture) deliverEvent(l *delivery) {
	to := subscriber(l.event.Type())
	if to == "" {
		return
	}
	err := w.call(to, l.event)
	if functions.ResultOf(err) == functions.ResultDone {
		return
	}
	l.tried++
	if l.tried < maxDeliveries && functions.ResultOf(err) == functions.ResultRetry {
		w.broker.deliveries = append(w.broker.deliveries, l)
		return
	}
	if !l.durable {
		return // its reconciler sends it again
	}
	if w.call("deadletter", l.event) != nil {
		l.tried = 0 // deadletter is retried without limit
		w.broker.deliveries = append(w.broker.deliveries, l)
	}
}

// errNotAccepted is the error of an unreachable or slow Broker.
var errNotAccepted = errors.New("the Broker did not answer")

// Deliver implements the callback's Deliverer.
func (w *fixture) Deliver(_ context.Context, e event.Event) error {
	switch w.draw("broker", 5) {
	case 4:
		return errNotAccepted
	case 3:
		w.broker.accept(e, false) // accepted, but the answer is lost
		return errNotAccepted
	default:
		w.broker.accept(e, true)
		return nil
	}
}

// deliverSome delivers, duplicates or loses one event of the Broker.
func (w *fixture) deliverSome() bool {
	if len(w.broker.deliveries) == 0 {
		return false
	}
	at := w.draw("event", len(w.broker.deliveries))
	switch w.draw("fate", 8) {
	case 7: // lost, unless it is durable
		if l := w.broker.deliveries[at]; !l.durable {
			w.broker.take(at)
		}
	case 6: // duplicate
		copied := *w.broker.deliveries[at]
		copied.durable = false
		w.deliverEvent(&copied)
	default:
		w.deliverEvent(w.broker.take(at))
	}
	return true
}
