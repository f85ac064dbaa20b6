package functions

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// permanentError is an error that a retry cannot resolve.
type permanentError struct{ cause error }

func (e *permanentError) Error() string { return e.cause.Error() }
func (e *permanentError) Unwrap() error { return e.cause }

// Permanent marks an error as permanent. It returns nil for nil.
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

// Result is the result of handling an event, and a metric label.
type Result string

// The results.
const (
	ResultDone      Result = "done"
	ResultPermanent Result = "permanent"
	ResultRetry     Result = "retry"
)

// ResultOf maps an error to a result. Content that the API server rejects, such as
// a status that violates the schema, is a permanent error. Unknown errors are
// transient.
func ResultOf(err error) Result {
	switch {
	case err == nil:
		return ResultDone
	case errors.As(err, new(*permanentError)), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return ResultPermanent
	default:
		return ResultRetry
	}
}

// Status returns the HTTP status for a Trigger. A Broker retries after 503, sends
// the event to the dead-letter sink after 400, and regards 200 as delivered.
func (r Result) Status() int {
	switch r {
	case ResultDone:
		return http.StatusOK
	case ResultPermanent:
		return http.StatusBadRequest
	default:
		return http.StatusServiceUnavailable
	}
}
