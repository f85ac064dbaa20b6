package admission

import (
	"context"
	"time"

	"knative.dev/pkg/apis"
)

// fallback is how long the API server waits for us if it does not say.
const fallback = 5 * time.Second

// WithDeadline returns a context that ends when the API server stops waiting
// for the answer. It says for how long it does in the query of its request.
func WithDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	wait := fallback
	if r := apis.GetHTTPRequest(ctx); r != nil {
		if d, err := time.ParseDuration(r.URL.Query().Get("timeout")); err == nil && d > 0 {
			wait = d
		}
	}
	return context.WithTimeout(ctx, wait)
}
