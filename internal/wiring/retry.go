package wiring

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

// RetryWithin returns the rate limiter of a controller that retries after at most this time. That of Knative
// waits up to a quarter of an hour, and counts the failures of the whole life of a process for
// a key that is reconciled again and again (controller.NewRequeueAfter).
func RetryWithin(most time.Duration) workqueue.TypedRateLimiter[any] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[any](5*time.Millisecond, most)
}
