package altershield

import (
	"errors"
	"fmt"
	"regexp"
)

// Result codes of the server. Some successes have none.
const (
	CodeOK        = "000"
	CodeArgument  = "101"
	CodeSignature = "102"
	CodeState     = "103"
	CodeNotFound  = "105"
	CodeExists    = "106"
	CodeInternal  = "901"
)

// ResultError is a rejection by the server, sent with HTTP status 200.
type ResultError struct {
	// Action is the rejected call.
	Action string
	// Code is the result code, truncated to 63 bytes; may be empty.
	Code string
	// Msg is the server's message, truncated to 1024 bytes.
	Msg string
}

// Error implements error.
func (e *ResultError) Error() string {
	return fmt.Sprintf("altershield %s: result code %q: %s", e.Action, e.Code, e.Msg)
}

func hasCode(err error, code string) bool {
	result, ok := errors.AsType[*ResultError](err)
	return ok && result.Code == code
}

// IsArgument reports whether the server rejected an argument (101). The server also
// answers 101 to a start of an unknown order.
func IsArgument(err error) bool { return hasCode(err, CodeArgument) }

// IsSignature reports whether the server rejected the signature (102): platform,
// token or header prefix is wrong.
func IsSignature(err error) bool { return hasCode(err, CodeSignature) }

// IsState reports whether the node is unknown or its state does not allow the
// call (103).
func IsState(err error) bool { return hasCode(err, CodeState) }

// IsNotBegun reports whether the server rejected a call because the PRE check of
// the node has not begun: the server lost the event of the start, or is slow.
func IsNotBegun(err error) bool {
	result, ok := errors.AsType[*ResultError](err)
	return ok && result.Code == CodeState && notBegun.MatchString(result.Msg)
}

// notBegun matches the state, in the server's message, of a node whose PRE check has
// not begun.
var notBegun = regexp.MustCompile(`\bPRE_AOP_SUBMIT\b`)

// IsNotFound reports whether the requested object does not exist (105).
func IsNotFound(err error) bool { return hasCode(err, CodeNotFound) }

// IsExists reports whether the order exists already (106). OpenOrder never
// returns this error.
func IsExists(err error) bool { return hasCode(err, CodeExists) }

// IsInternal reports whether the server had an internal error (901).
func IsInternal(err error) bool { return hasCode(err, CodeInternal) }

// CallErrorKind is the cause of a CallError, and the value of a metric label.
type CallErrorKind string

// The kinds.
const (
	// KindThrottled: the deadline expired in the client's token bucket.
	KindThrottled CallErrorKind = "throttled"
	// KindDial: the connection could not be established.
	KindDial CallErrorKind = "dial"
	// KindTimeout: the answer was not complete in time.
	KindTimeout CallErrorKind = "timeout"
	// KindIO: the connection broke.
	KindIO CallErrorKind = "io"
	// KindStatus: the HTTP status is not 200. The server answers each call with 200, except one that it
	// cannot parse, and those of its admin API; other statuses are those of a proxy.
	KindStatus CallErrorKind = "status"
	// KindMalformed: status 200, but the body is no envelope of the server or
	// exceeds 1 MiB.
	KindMalformed CallErrorKind = "malformed"
	// KindBreaker: the circuit breaker is open; the call was not made.
	KindBreaker CallErrorKind = "breaker"
	// KindCanceled: the caller's context was canceled.
	KindCanceled CallErrorKind = "canceled"
)

// CallError is a call that was not made, or that has no usable answer.
type CallError struct {
	// Action is the failed call, or "reserve" if no slot of the rate limit was free.
	Action string
	Kind   CallErrorKind
	// Status is the HTTP status if Kind is KindStatus.
	Status int
	// MaybeReceived: the server may have received the request, because a connection
	// existed and bytes may have been written.
	MaybeReceived bool
	Err           error
}

// Error implements error.
func (e *CallError) Error() string {
	if e.Kind == KindStatus {
		return fmt.Sprintf("altershield %s: status %d: %v", e.Action, e.Status, e.Err)
	}
	return fmt.Sprintf("altershield %s: %s: %v", e.Action, e.Kind, e.Err)
}

// Unwrap implements errors.Unwrap.
func (e *CallError) Unwrap() error { return e.Err }

// MayHaveTakenEffect reports whether the call may have had an effect at the server despite
// the error. If so, repeat a start and drop callbacks of the earlier node; after a finish,
// call Retrieve, because a second finish is rarely judged. A rejected call had no
// effect, except with 901, which may follow a partial write.
func MayHaveTakenEffect(err error) bool {
	if result, ok := errors.AsType[*ResultError](err); ok {
		return result.Code == CodeInternal || result.Code == ""
	}
	if callErr, ok := errors.AsType[*CallError](err); ok {
		return callErr.MaybeReceived
	}
	return false
}
