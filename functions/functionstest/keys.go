package functionstest

import (
	"testing"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/breakwater-dev/breakwater/internal/eventsigning"
)

// Keys are the keys of verdicts in tests.
func Keys() eventsigning.Keys { return eventsigning.Keys{Current: []byte("key")} }

// SignedVerdict returns an event with a signature of Keys.
func SignedVerdict(t testing.TB, e event.Event) event.Event {
	t.Helper()
	e = e.Clone()
	if err := Keys().Sign(t.Context(), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// EventKeys are the keys of the other events of the controller in tests.
func EventKeys() eventsigning.Keys { return eventsigning.Keys{Current: []byte("event key")} }

// SignedByController returns an event with a signature of EventKeys.
func SignedByController(t testing.TB, e event.Event) event.Event {
	t.Helper()
	e = e.Clone()
	if err := EventKeys().Sign(t.Context(), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// JudgeKey returns the key of a judge in tests, which it has in Secret external-judge-keys.
func JudgeKey(judge string) eventsigning.Keys {
	return eventsigning.Keys{Current: []byte("key of judge " + judge + ", of at least 32 bytes")}
}

// Rotated are the keys after the controller replaced them.
func Rotated(keys eventsigning.Keys) eventsigning.Keys {
	return eventsigning.Keys{Current: []byte("next"), Previous: keys.Current}
}
