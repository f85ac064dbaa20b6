package centreclient

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/breakwater-dev/breakwater/internal/text"
	"github.com/breakwater-dev/breakwater/permission/api"
)

// maxMessage bounds the message of an error in bytes. Messages are stored in the status
// of pods and in the breaker's ConfigMap.
const maxMessage = 1024

// StatusError is a response with status 300 or above: a redirect that would change the method or the host is not followed.
type StatusError struct {
	Status int
	Detail api.Error
	// RetryAfter is the value of the Retry-After header, for 429 and 503.
	RetryAfter time.Duration
}

// Error implements error. The message contains no address.
func (e *StatusError) Error() string {
	message := fmt.Sprintf("the permission centre answered %d", e.Status)
	for _, part := range []string{e.Detail.Reason, e.Detail.Message} {
		if part != "" {
			message += ": " + part
		}
	}
	return text.Truncate(message, maxMessage)
}

// IsNotFound reports whether the centre answered that the object does not exist. A 404
// without the reason of the centre is that of a proxy, or of another server.
func IsNotFound(err error) bool {
	status, ok := errors.AsType[*StatusError](err)
	return ok && status.Status == http.StatusNotFound && status.Detail.Reason == "NotFound"
}

// IsConflict reports whether the centre answered 409. For a request of a set: the
// application is being revoked, the provider is being called for its leaked grant or has
// accepted its revocation, or the pod has ended.
func IsConflict(err error) bool {
	status, ok := errors.AsType[*StatusError](err)
	return ok && status.Status == http.StatusConflict
}

// IsPermanent reports whether the same request would fail again until a person changes
// the pod or the permission set: the request is invalid, or the set does not exist or
// does not allow the pod. The addresses of its node are not those of the pod: a new node may
// get them later. Any other 403 or 404 is an error of the configuration: the user
// of the client has no right, or the URL is not that of a centre. A 400 or 422 without the
// reason of the centre is that of a proxy, or of another server.
func IsPermanent(err error) bool {
	status, ok := errors.AsType[*StatusError](err)
	if !ok {
		return false
	}
	switch status.Status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return status.Detail.Reason != "" && status.Detail.Field != "nodeIPs"
	case http.StatusForbidden, http.StatusNotFound:
		return status.Detail.Field == "set"
	}
	return false
}

// maxRetryAfter bounds the wait that a centre, or a proxy, asks for.
const maxRetryAfter = time.Hour

// RetryAfter returns how long to wait before a retry if the centre answered 429,
// otherwise 0.
func RetryAfter(err error) time.Duration {
	if status, ok := errors.AsType[*StatusError](err); ok && status.Status == http.StatusTooManyRequests {
		return min(max(status.RetryAfter, time.Second), maxRetryAfter)
	}
	return 0
}
