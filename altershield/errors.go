package altershield

import (
	"errors"
	"fmt"
)

// Result codes of the server. Some successes carry none.
const (
	CodeOK        = "000"
	CodeArgument  = "101"
	CodeSignature = "102"
	CodeState     = "103"
	CodeNotFound  = "105"
	CodeExists    = "106"
	CodeInternal  = "901"
)

// ResultError is the server's no, sent with HTTP 200.
type ResultError struct {
	// Action is the call that was refused.
	Action string
	// Code is the result code, cut to 63 bytes; empty when the server gave none.
	Code string
	// Msg is the server's word, cut to 1024 bytes.
	Msg string
}

// Error implements error.
func (e *ResultError) Error() string {
	return fmt.Sprintf("altershield %s: result code %q: %s", e.Action, e.Code, e.Msg)
}

func hasCode(err error, code string) bool {
	var result *ResultError
	return errors.As(err, &result) && result.Code == code
}

// IsArgument says that the server refused an argument (101); also how it
// answers a start of an order that it does not know.
func IsArgument(err error) bool { return hasCode(err, CodeArgument) }

// IsSignature says that the server did not believe us (102): platform, token
// or header prefix is wrong.
func IsSignature(err error) bool { return hasCode(err, CodeSignature) }

// IsState says that the node is in a state that does not allow the call, or
// that the server does not know the node (103).
func IsState(err error) bool { return hasCode(err, CodeState) }

// IsNotFound says that the server lacks what was asked for (105).
func IsNotFound(err error) bool { return hasCode(err, CodeNotFound) }

// IsExists says that the order exists (106). OpenOrder never returns it.
func IsExists(err error) bool { return hasCode(err, CodeExists) }

// IsInternal says that the server failed (901).
func IsInternal(err error) bool { return hasCode(err, CodeInternal) }

// TransportKind is why there was no usable answer; it serves as a metric label.
type TransportKind string

// The kinds.
const (
	// KindThrottled: the deadline passed in our own token bucket.
	KindThrottled TransportKind = "throttled"
	// KindDial: no connection.
	KindDial TransportKind = "dial"
	// KindTimeout: an answer did not come in time, or came too slowly.
	KindTimeout TransportKind = "timeout"
	// KindIO: the connection broke.
	KindIO TransportKind = "io"
	// KindStatus: an HTTP status other than 200, which the server never sends.
	KindStatus TransportKind = "status"
	// KindMalformed: 200 with something that is not the server's envelope, or
	// with more than 1 MiB.
	KindMalformed TransportKind = "malformed"
	// KindBreaker: the server was away a moment ago, so it was not called.
	KindBreaker TransportKind = "breaker"
	// KindCanceled: the caller gave up.
	KindCanceled TransportKind = "canceled"
)

// TransportError is a call without a usable answer.
type TransportError struct {
	// Action is the call.
	Action string
	Kind   TransportKind
	// Status is the HTTP status where Kind is KindStatus.
	Status int
	// Sent says that the server may have seen the request: a connection was
	// there and bytes may have been written.
	Sent bool
	Err  error
}

// Error implements error.
func (e *TransportError) Error() string {
	if e.Kind == KindStatus {
		return fmt.Sprintf("altershield %s: status %d: %v", e.Action, e.Status, e.Err)
	}
	return fmt.Sprintf("altershield %s: %s: %v", e.Action, e.Kind, e.Err)
}

// Unwrap implements errors.Unwrap.
func (e *TransportError) Unwrap() error { return e.Err }

// MayHaveReached says that the server may have acted on the call although it
// ended in this error. It is the question to ask after a start (start again,
// and drop callbacks of the node that may have been made) or a finish (ask
// retrieve; a second finish is never judged). A refusal did not act, except
// 901, which may come after the server has stored its part.
func MayHaveReached(err error) bool {
	var result *ResultError
	if errors.As(err, &result) {
		return result.Code == CodeInternal || result.Code == ""
	}
	var transport *TransportError
	if errors.As(err, &transport) {
		return transport.Sent
	}
	return false
}
