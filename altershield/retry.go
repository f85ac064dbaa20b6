package altershield

import (
	"errors"
	"net/http"
)

// repeat is the effect of a call that the server receives twice.
type repeat int

const (
	// repeatHarmless: the second call has no further effect.
	repeatHarmless repeat = iota
	// repeatHarmful: a second start creates a second node. A second finish is rejected while
	// the check of the first one runs; later it is accepted, but rarely judged. A second
	// resubmit is rejected as if the check had never begun.
	repeatHarmful
)

// retryable reports whether to make another attempt. A call that is harmful to
// repeat is retried only if the request was certainly not sent.
func retryable(err error, r repeat) bool {
	if result, ok := errors.AsType[*ResultError](err); ok {
		// The server rejects the same request again, except after an internal error.
		return r == repeatHarmless && result.Code == CodeInternal
	}
	callErr, ok := errors.AsType[*CallError](err)
	if !ok {
		return false
	}
	if r == repeatHarmful && callErr.MaybeReceived {
		return false
	}
	switch callErr.Kind {
	case KindDial, KindTimeout, KindIO, KindMalformed:
		return true
	case KindStatus:
		return retryableStatus(callErr.Status)
	default: // throttled, canceled: no time is left; breaker: the pause is not over
		return false
	}
}

// retryableStatus reports whether a proxy sends the status for an unreachable or
// overloaded server. Other statuses, such as 404, mean a wrong base-url.
func retryableStatus(status int) bool {
	return status >= http.StatusInternalServerError ||
		status == http.StatusTooManyRequests ||
		status == http.StatusRequestTimeout
}
