package events

import (
	"bytes"
	"encoding/json"
	"fmt"

	cloudevents "github.com/cloudevents/sdk-go/v2"
)

const (
	// MaxData is the largest size of an event's data, in bytes. Brokers accept
	// far more; the limit ensures that events carry references and not large objects.
	MaxData = 4096
	// MaxText is the longest message, in bytes: the limit of the status fields
	// that messages are copied to.
	MaxText = 1024
)

// Data is the payload of an event. Type, ID, Source and Subject are its
// CloudEvents attributes, which are derived from the data.
type Data interface {
	Type() string
	ID() string
	Source() string
	Subject() string
	// Validate returns an error that names the field.
	Validate() error
	// truncated returns the data with messages of at most limit bytes.
	truncated(limit int) Data
}

// New returns the event that carries the data. Messages are truncated to MaxText
// bytes, and further if the data exceeds MaxData. An error names the field that
// is missing or invalid.
//
// Only verdicts have the attribute time: when they were received or decided, not when
// they were sent. Other events have their time in the data, if they have one.
func New(d Data) (cloudevents.Event, error) {
	d, raw, err := fit(d)
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
	case JudgeVerdict:
		e.SetTime(v.Time.Time)
		e.SetExtension(JudgeExtension, v.Judge)
	case ChangePodReady:
		e.SetExtension(JudgeExtension, v.judge())
	}
	if err := e.SetData(cloudevents.ApplicationJSON, raw); err != nil {
		return cloudevents.Event{}, fmt.Errorf("event %s: %w", d.Type(), err)
	}
	// Without this, structured mode writes the data as base64 instead of JSON.
	e.DataBase64 = false
	if err := e.Validate(); err != nil {
		return cloudevents.Event{}, fmt.Errorf("event %s: %w", d.Type(), err)
	}
	return e, nil
}

// Truncated returns data as an event has it: with messages that are truncated until the data
// fits into an event.
func Truncated[D Data](d D) (D, error) {
	fitting, _, err := fit(d)
	if err != nil {
		var none D
		return none, fmt.Errorf("event %s: %w", d.Type(), err)
	}
	return fitting.(D), nil // truncated keeps the type
}

// fit validates data, and drops its copy of a ChangePod, and then halves the limit of its messages,
// until it fits into MaxData. If a fail does not fit even without messages, fit drops the results that
// are no fails, and begins again. JSON escapes control characters with six bytes, so only the encoded
// size counts.
func fit(d Data) (Data, []byte, error) {
	d = d.truncated(MaxText)
	if err := d.Validate(); err != nil {
		return d, nil, err
	}
	for limit := MaxText; ; {
		fitting := d.truncated(limit)
		raw, err := marshal(fitting)
		if err != nil {
			return d, nil, err
		}
		if len(raw) <= MaxData {
			return fitting, raw, nil
		}
		var had bool
		if d, had = withoutCopy(d); had {
			continue
		}
		if limit > 0 {
			limit /= 2
			continue
		}
		if d, had = withFailsOnly(d); !had {
			return d, nil, &TooLargeError{Size: len(raw)}
		}
		limit = MaxText
	}
}

// marshal does not escape <, > and &: the data is not used in HTML, and each
// escape costs six bytes.
func marshal(d Data) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(d); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// TooLargeError reports data that exceeds MaxData even without messages.
type TooLargeError struct {
	// Size is the size of the data in bytes.
	Size int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("data has %d bytes, at most %d are allowed", e.Size, MaxData)
}
