package delivery

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.opentelemetry.io/otel/attribute"
)

// signer writes the extension "signature"; it fails the first n times.
type signer struct{ fails atomic.Int32 }

func (s *signer) Sign(_ context.Context, e *cloudevents.Event) error {
	if s.fails.Add(-1) >= 0 {
		return errors.New("the key cannot be read")
	}
	e.SetExtension("signature", "of "+e.Subject())
	return nil
}

func TestEventsAreSigned(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{Signer: &signer{}}, to(b.URL))
	s.run(t)
	sent := wakeUp(t, "a")
	s.Send(t.Context(), sent)
	if got := b.next(t).event.Extensions()["signature"]; got != "of a" {
		t.Errorf("signature %v", got)
	}
	if err := s.Deliver(t.Context(), wakeUp(t, "b")); err != nil {
		t.Fatal(err)
	}
	if got := b.next(t).event.Extensions()["signature"]; got != "of b" {
		t.Errorf("signature %v", got)
	}
	if got, ok := sent.Extensions()["signature"]; ok {
		t.Errorf("the caller's event has signature %v", got)
	}
}

// The controller signs a verdict with the key of verdicts.
func TestASignatureIsKept(t *testing.T) {
	b := newBroker(t)
	s := newFixture(t, Options{Signer: &signer{}}, to(b.URL))
	s.run(t)
	e := wakeUp(t, "a")
	e.SetExtension("signature", "of its own")
	s.Send(t.Context(), e)
	if got := b.next(t).event.Extensions()["signature"]; got != "of its own" {
		t.Errorf("signature %v", got)
	}
}

func TestAKeyThatCannotBeReadDelaysTheEvent(t *testing.T) {
	b := newBroker(t)
	key := &signer{}
	key.fails.Store(2)
	s := newFixture(t, Options{workers: 1, Signer: key}, to(b.URL))
	s.run(t)
	accepted := make(chan struct{})
	s.SendAndConfirm(t.Context(), wakeUp(t, "a"), func() { close(accepted) })
	if got := b.next(t).event.Extensions()["signature"]; got != "of a" {
		t.Errorf("signature %v", got)
	}
	receive(t, accepted)
	s.eventually(t, 2, "breakwater_event_send_attempts_total", attribute.String("result", "unsigned"))
	s.eventually(t, 0, "breakwater_events_dropped_total")
}
