package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.uber.org/zap"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/network/handlers"

	"github.com/breakwater-dev/breakwater/internal/connlimit"
)

const (
	headerTimeout = 5 * time.Second
	// readTimeout limits a request. The API server waits at most 30 s for an answer.
	readTimeout = 10 * time.Second
	// idleTimeout is longer than that of the API server's client (90 s), so that the
	// client closes an idle connection and no request is lost.
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 16 << 10
	// maxUnauthenticated limits the open connections without an authenticated request.
	maxUnauthenticated = 256
	// quietPeriod is how long a terminating process must get no request before it stops
	// listening: API servers learn with a delay that the process is no longer an endpoint.
	quietPeriod = 5 * time.Second
	// drainTimeout limits the wait for a quiet period. Requests in flight and the
	// release of Leases follow, within terminationGracePeriodSeconds of the manifests.
	drainTimeout = 25 * time.Second
)

// serve serves HTTPS until ctx ends, and then until no request has arrived for
// quietPeriod, at most for drainTimeout. check lets only some requests pass.
func serve(ctx context.Context, listener net.Listener, config *tls.Config, name string, check func(http.Handler) http.Handler, handler http.Handler) error {
	drainer := &handlers.Drainer{Inner: closeConnections(ctx, handler), QuietPeriod: quietPeriod}
	server := &http.Server{
		Handler:           check(otelhttp.NewHandler(drainer, name)),
		TLSConfig:         config,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		// Without HTTP/2: an API server would send all requests to one replica.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		ErrorLog:     zap.NewStdLog(logging.FromContext(ctx).Desugar()),
	}
	connlimit.New(maxUnauthenticated).Apply(server)
	failed := make(chan error, 1)
	go func() { failed <- server.ServeTLS(listener, "", "") }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	drained := make(chan struct{})
	go func() { drainer.Drain(); close(drained) }()
	select {
	case <-drained:
	case <-time.After(drainTimeout):
	}
	if err := server.Shutdown(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("drain requests: %w", err)
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// closeConnections closes each connection after its next response once ctx ends.
// The API server reuses open connections, and would otherwise send requests to a
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
