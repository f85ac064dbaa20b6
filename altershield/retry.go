package altershield

import (
	"errors"
	"net/http"
)

// repeat says what becomes of a call that the server gets twice.
type repeat int

const (
	// harmless: the second does nothing, or the same again.
	harmless repeat = iota
	// harmful: a second start makes a second node, and a second finish is
	// accepted and then never called back.
	harmful
)

// retryable says whether another attempt is worth it. A call whose repetition
// is harmful is tried again only when the request was certainly not written.
func retryable(err error, r repeat) bool {
	var result *ResultError
	if errors.As(err, &result) {
		// The same words get the same refusal, except when the server failed.
		return r == harmless && result.Code == CodeInternal
	}
	var transport *TransportError
	if !errors.As(err, &transport) {
		return false
	}
	if r == harmful && transport.Sent {
		return false
	}
	switch transport.Kind {
	case KindDial, KindTimeout, KindIO, KindMalformed:
		return true
	case KindStatus:
		return retryableStatus(transport.Status)
	default: // throttled, canceled: the time is up; breaker: the server has its pause
		return false
	}
}

// retryableStatus: a proxy says these of a server that is away or busy. 404
// and its likes are a wrong base-url, which waiting does not cure.
func retryableStatus(status int) bool {
	return status >= http.StatusInternalServerError ||
		status == http.StatusTooManyRequests ||
		status == http.StatusRequestTimeout
}
