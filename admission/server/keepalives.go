package server

import (
	"context"
	"net/http"

	"knative.dev/pkg/apis"
)

// DisableKeepAlives closes the API server's connections after their next response.
// The API server reuses open connections, and would otherwise send requests to a
// terminating process until that is killed during a response.
func DisableKeepAlives(ctx context.Context) {
	r := apis.GetHTTPRequest(ctx)
	if r == nil {
		return
	}
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok {
		s.SetKeepAlivesEnabled(false)
	}
}
