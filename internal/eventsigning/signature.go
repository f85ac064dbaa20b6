// Package eventsigning signs and verifies the events that functions act on. Every pod that
// reaches the Broker or a function can send an event, but a verdict of the server counts only
// if it is signed by a component that received it authenticated: the callback, or the
// controller, which sends verdicts of an inbox again. The two share a key, in Secret
// verdict-signing-key. Each other judge has a key of its own (JudgeKeys). The controller signs
// its other events with the key in Secret event-signing-key.
//
// The signature is the extension "signature": HMAC-SHA256 over type, id and data, and for a replay the extension
// "replayof", in hexadecimal. Brokers keep extensions, also in dead letters.
package eventsigning

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"

	"github.com/cloudevents/sdk-go/v2/event"
)

const (
	// Extension is the name of the CloudEvents extension with the signature.
	Extension = "signature"
	// ReplayExtension has the name of the Kubernetes Event that stores the replayed event. An undeliverable replay gets a
	// Kubernetes Event of its own.
	ReplayExtension = "replayof"
)

// ErrNotAuthentic reports an event whose signature is not accepted: it is forged, or the
// key of its judge is missing or not allowed. A retry helps only after the keys were
// changed.
var ErrNotAuthentic = errors.New("the event has no valid signature")

// Keys are the keys of signatures. Events are signed with Current.
type Keys struct {
	Current []byte
	// Previous is the key that Current replaced; nil if there was none.
	Previous []byte
}

// Sign signs an event.
func (k Keys) Sign(_ context.Context, e *event.Event) error {
	e.SetExtension(Extension, hex.EncodeToString(mac(k.Current, *e)))
	return nil
}

// Verify returns ErrNotAuthentic unless one of the keys signed an event.
func (k Keys) Verify(_ context.Context, e event.Event) error {
	text, _ := e.Extensions()[Extension].(string)
	got, err := hex.DecodeString(text)
	if err != nil {
		return ErrNotAuthentic
	}
	for _, key := range [][]byte{k.Current, k.Previous} {
		if len(key) > 0 && hmac.Equal(got, mac(key, e)) {
			return nil
		}
	}
	return ErrNotAuthentic
}

// mac returns the authentication code. Each part is preceded by its length, so that no
// other parts have the same code.
func mac(key []byte, e event.Event) []byte {
	h := hmac.New(sha256.New, key)
	parts := [][]byte{[]byte(e.Type()), []byte(e.ID()), compact(e.Data())}
	if replayOf, ok := e.Extensions()[ReplayExtension].(string); ok {
		parts = append(parts, []byte(replayOf))
	}
	for _, part := range parts {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part))) // a hash never fails
		h.Write(part)
	}
	return h.Sum(nil)
}

// compact removes white space: a Broker may change it when it changes the mode of an
// event.
func compact(data []byte) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, data); err != nil {
		return data
	}
	return b.Bytes()
}
