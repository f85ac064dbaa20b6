package wiring

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

// RetryWithin returns the rate limiter of a controller that retries after at most this time. That of Knative
// waits up to a quarter of an hour.
func RetryWithin(most time.Duration) workqueue.TypedRateLimiter[any] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[any](5*time.Millisecond, most)
}
