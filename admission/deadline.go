package admission

import (
	"context"
	"time"

	"knative.dev/pkg/apis"
)

const (
	// defaultTimeout applies if the request has no timeout.
	defaultTimeout = 5 * time.Second
	// maxTimeout is the maximum timeoutSeconds of a webhook.
	maxTimeout = 30 * time.Second
)

// WithDeadline returns a context that ends when the API server stops waiting for
// the response: after the timeout in the query of its request.
func WithDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	wait := defaultTimeout
	if r := apis.GetHTTPRequest(ctx); r != nil {
		if d, err := time.ParseDuration(r.URL.Query().Get("timeout")); err == nil && d > 0 {
			wait = min(d, maxTimeout)
		}
	}
	return context.WithTimeout(ctx, wait)
}
