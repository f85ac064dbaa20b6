// Package drain keeps a terminating process in service until its clients have learned that it ends.
package drain

import (
	"context"
	"net/http"
	"time"

	"knative.dev/pkg/network/handlers"
)

const (
	// QuietPeriod is how long a terminating process must get no request before it stops
	// listening: clients learn with a delay that the process is no longer an endpoint.
	QuietPeriod = 5 * time.Second
	// MaxWait limits the wait for a quiet period. Requests in flight follow, within
	// terminationGracePeriodSeconds of the manifests.
	MaxWait = 25 * time.Second
)

// Handler returns a handler whose responses close their connection once ctx ends, and a function to call then. The
// function lets probes of the kubelet fail, and returns when no other request has arrived for QuietPeriod, at the latest
// after MaxWait.
func Handler(ctx context.Context, next http.Handler) (handler http.Handler, awaitQuiet func()) {
	drainer := &handlers.Drainer{Inner: closeConnections(ctx, next), QuietPeriod: QuietPeriod}
	return drainer, func() {
		drained := make(chan struct{})
		go func() { drainer.Drain(); close(drained) }()
		select {
		case <-drained:
		case <-time.After(MaxWait):
		}
	}
}

// closeConnections closes each connection after its next response once ctx ends.
// Clients reuse open connections, and would otherwise send requests to a
// terminating process until that is killed during a response. An idle connection
// must stay open: a request may already be on its way, and would be lost.
func closeConnections(ctx context.Context, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if ctx.Err() != nil {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
