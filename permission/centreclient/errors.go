package centreclient

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// StatusError is an answer of 400 and above.
type StatusError struct {
	Status int
	Detail api.Error
	// RetryAfter is how long the centre asks to wait, for 429 and 503.
	RetryAfter time.Duration
}

// Error implements error; it names no address.
func (e *StatusError) Error() string {
	words := fmt.Sprintf("the permission centre answered %d", e.Status)
	for _, more := range []string{e.Detail.Reason, e.Detail.Message} {
		if more != "" {
			words += ": " + more
		}
	}
	return words
}

// IsNotFound says that there is no such object.
func IsNotFound(err error) bool { return hasStatus(err, http.StatusNotFound) }

// IsConflict says that what was granted before is still being taken back.
func IsConflict(err error) bool { return hasStatus(err, http.StatusConflict) }

// IsInvalid says that asking again as it is changes nothing: what was asked for
// is not there or cannot be.
func IsPermanent(err error) bool {
	return IsNotFound(err) || hasStatus(err, http.StatusBadRequest) || hasStatus(err, http.StatusUnprocessableEntity)
}

// Later returns how long the centre asks to wait, 0 if it does not.
func RetryAfter(err error) time.Duration {
	var status *StatusError
	if errors.As(err, &status) && status.Status == http.StatusTooManyRequests {
		return max(status.RetryAfter, time.Second)
	}
	return 0
}

func hasStatus(err error, code int) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Status == code
}
