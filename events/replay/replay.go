// Package replay says which undelivered events a person can have sent again, and stores them.
//
// An event is replayable if it is sent once: a report of a finished pod or of a state of a
// release. Its receivers recognize it by its id. Wake-ups are repeated by their reconciler,
// verdicts are in the inbox of their release or are repeated by their judge, and the progress of
// a release is reported again by the next event.
//
// Function deadletter stores an event with its signature. The controller verifies the signature, and signs the
// replay. So a stored event that the controller did not sign is never sent.
package replay

import (
	"encoding/json"
	"fmt"
	"slices"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
)

// MaxStored is the maximum size of a stored event in bytes: the data and the attributes.
const MaxStored = 2 * events.MaxData

// Subject is what a replayable event is about.
type Subject struct {
	Namespace string
	Workload  events.Workload
}

// Replayable reports whether events of the type can be replayed.
func Replayable(eventType string) bool {
	return slices.Contains([]string{
		events.TypePodFinished,
		events.TypeChangeWorkloadStarted,
		events.TypeChangeWorkloadSucceeded,
		events.TypeChangeWorkloadSuspended,
		events.TypeChangeWorkloadFailed,
		events.TypeChangeWorkloadRolledBack,
		events.TypeChangeWorkloadBypassed,
	}, eventType)
}

// Encode returns a replayable event as it is stored: without the extensions of a Broker, which
// contain the answer of a function.
func Encode(e cloudevents.Event) (string, error) {
	if _, err := subjectOf(e); err != nil {
		return "", err
	}
	e = e.Clone()
	for name := range e.Extensions() {
		if name != eventsigning.Extension && name != eventsigning.ReplayExtension {
			e.SetExtension(name, nil)
		}
	}
	raw, err := e.MarshalJSON() // json.Marshal would escape characters of the signed data
	if err != nil {
		return "", fmt.Errorf("encode event %s: %w", e.ID(), err)
	}
	if len(raw) > MaxStored {
		return "", fmt.Errorf("encode event %s: %d bytes, at most %d are stored", e.ID(), len(raw), MaxStored)
	}
	return string(raw), nil
}

// Decode returns a stored event and what it is about. The caller verifies the signature.
func Decode(stored string) (cloudevents.Event, Subject, error) {
	var e cloudevents.Event
	if len(stored) > MaxStored {
		return e, Subject{}, fmt.Errorf("the stored event has %d bytes, more than %d", len(stored), MaxStored)
	}
	if err := json.Unmarshal([]byte(stored), &e); err != nil {
		return e, Subject{}, fmt.Errorf("parse the stored event: %w", err)
	}
	subject, err := subjectOf(e)
	return e, subject, err
}

// subjectOf returns the subject from the signed data.
func subjectOf(e cloudevents.Event) (Subject, error) {
	if !Replayable(e.Type()) {
		return Subject{}, fmt.Errorf("events of type %s cannot be replayed", e.Type())
	}
	if err := events.VerifySource(e); err != nil {
		return Subject{}, err
	}
	if e.Type() == events.TypePodFinished {
		d, err := events.ParsePodFinished(e)
		return Subject{d.Namespace, d.Workload}, err
	}
	d, err := events.ParseChangeWorkload(e)
	return Subject{d.Namespace, d.Workload}, err
}
