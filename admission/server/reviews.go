package server

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/admission"
)

const (
	// smallReview is the maximum size of a small review, in bytes: most objects have a few KiB.
	smallReview = 64 << 10
	// maxSmallBytes and maxLargeBytes limit the bodies of all small and of all large reviews, in
	// bytes. A decoded review takes about ten times its body, so they fit into the memory limit of
	// the manifests.
	maxSmallBytes, maxLargeBytes = 8 << 20, 24 << 20
)

// reviews bounds the bytes of all reviews: a user can make the API server send many large ones at
// once. Further ones wait unread, and small ones do not wait for large ones.
type reviews struct{ small, large *semaphore.Weighted }

func newReviews() *reviews {
	return &reviews{small: semaphore.NewWeighted(maxSmallBytes), large: semaphore.NewWeighted(maxLargeBytes)}
}

// acquire waits until there is memory for the review of a request, at most until the API server
// does not wait any more. release must be called when the review is answered.
func (v *reviews) acquire(w http.ResponseWriter, r *http.Request) (release func(), err error) {
	size := r.ContentLength
	if size < 0 || size > maxReviewBytes {
		size = maxReviewBytes // nothing beyond it is read
	}
	limit := v.small
	if size > smallReview {
		limit = v.large
	}
	if !limit.TryAcquire(size) {
		if err := await(r, limit, size); err != nil {
			return nil, err
		}
		// It was not read while it waited. Without support for deadlines, as in some tests, the
		// server's own limit remains.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTimeout))
	}
	return func() { limit.Release(size) }, nil
}

func await(r *http.Request, limit *semaphore.Weighted, size int64) error {
	ctx, cancel := admission.WithDeadline(apis.WithHTTPRequest(context.WithoutCancel(r.Context()), r))
	defer cancel()
	return limit.Acquire(ctx, size)
}
