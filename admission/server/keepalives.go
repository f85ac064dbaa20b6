package server

import (
	"context"
	"net/http"

	"knative.dev/pkg/apis"
)

// DisableKeepAlives makes the API server's connections end with their next answer. It
// keeps them open for as long as they are of use, so without this it would go
// on asking a process that is about to end, until that is killed in the middle
// of an answer.
func DisableKeepAlives(ctx context.Context) {
	r := apis.GetHTTPRequest(ctx)
	if r == nil {
		return
	}
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok {
		s.SetKeepAlivesEnabled(false)
	}
}
