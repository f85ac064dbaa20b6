package functions

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// permanentError is an error that no repetition mends.
type permanentError struct{ cause error }

func (e *permanentError) Error() string { return e.cause.Error() }
func (e *permanentError) Unwrap() error { return e.cause }

// Permanent says that the same event can never succeed. nil stays nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{cause: err}
}

// Permanentf is Permanent of a formatted error.
func Permanentf(format string, args ...any) error {
	return Permanent(fmt.Errorf(format, args...))
}

// Fate is what becomes of an event, and the label of its metric.
type Fate string

// The fates.
const (
	FateDone      Fate = "done"
	FatePermanent Fate = "permanent"
	FateRetry     Fate = "retry"
)

// FateOf is the one place where an error becomes a fate. What the API server
// refuses for its content (a status that its schema forbids) is refused again
// at every repetition; anything unknown may have been bad luck.
func FateOf(err error) Fate {
	var permanent *permanentError
	switch {
	case err == nil:
		return FateDone
	case errors.As(err, &permanent), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return FatePermanent
	default:
		return FateRetry
	}
}

// Status is the answer to a Trigger. A Broker repeats 503, hands 400 to the
// dead-letter sink at once, and takes 200 as delivered.
func (f Fate) Status() int {
	switch f {
	case FateDone:
		return http.StatusOK
	case FatePermanent:
		return http.StatusBadRequest
	default:
		return http.StatusServiceUnavailable
	}
}
