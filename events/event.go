package events

import (
	"bytes"
	"encoding/json"
	"fmt"

	cloudevents "github.com/cloudevents/sdk-go/v2"
)

const (
	// MaxData is how many bytes the data of an event may have. Brokers take
	// far more; the bound keeps events what they are, references.
	MaxData = 4096
	// MaxText is how many bytes a text for people (a message) may have: what
	// the fields of the status that it ends in can hold.
	MaxText = 1024
)

// Data is what an event carries. Type, ID, Source and Subject are its
// CloudEvents attributes; all of them follow from the data.
type Data interface {
	Type() string
	ID() string
	Source() string
	Subject() string
	// Validate returns an error that names the field.
	Validate() error
	// bounded returns the data with no text longer than limit bytes.
	bounded(limit int) Data
}

// New returns the event that carries the data. Texts longer than MaxText are
// cut, and all of them shorter yet when the data would not fit MaxData. The
// error names the field that is missing or wrong.
//
// The attribute time is set where the data knows one: the time of a fact, not
// of a sending.
func New(d Data) (cloudevents.Event, error) {
	d = d.bounded(MaxText)
	if err := d.Validate(); err != nil {
		return cloudevents.Event{}, fmt.Errorf("event %s: %w", d.Type(), err)
	}
	raw, err := encode(d)
	if err != nil {
		return cloudevents.Event{}, fmt.Errorf("event %s: %w", d.Type(), err)
	}
	e := cloudevents.NewEvent()
	e.SetType(d.Type())
	e.SetID(d.ID())
	e.SetSource(d.Source())
	e.SetSubject(d.Subject())
	switch v := d.(type) {
	case ChangePodVerdict:
		e.SetTime(v.Time.Time)
	case OrderVerdict:
		e.SetTime(v.Time.Time)
	}
	if err := e.SetData(cloudevents.ApplicationJSON, raw); err != nil {
		return cloudevents.Event{}, fmt.Errorf("event %s: %w", d.Type(), err)
	}
	// Bytes are otherwise written as base64 in structured mode, which nobody can read.
	e.DataBase64 = false
	if err := e.Validate(); err != nil {
		return cloudevents.Event{}, fmt.Errorf("event %s: %w", d.Type(), err)
	}
	return e, nil
}

// encode halves the bound on texts until the data fits. A text of control
// characters is six times as long in JSON, so its length alone says little.
func encode(d Data) ([]byte, error) {
	for limit := MaxText; ; limit /= 2 {
		raw, err := marshal(d.bounded(limit))
		if err != nil {
			return nil, err
		}
		if len(raw) <= MaxData {
			return raw, nil
		}
		if limit == 0 {
			return nil, &TooLargeError{Size: len(raw)}
		}
	}
}

// marshal leaves <, > and & as they are: nobody puts the data into HTML, and
// each would cost six bytes.
func marshal(d Data) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(d); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// TooLargeError says that data does not fit MaxData, even without any text.
type TooLargeError struct {
	// Size is in bytes.
	Size int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("data: %d bytes, at most %d are allowed", e.Size, MaxData)
}
