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

	"github.com/breakwater-dev/breakwater/internal/connlimit"
	"github.com/breakwater-dev/breakwater/internal/drain"
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
)

// serve serves HTTPS until ctx ends, and then until no request has arrived for
// drain.QuietPeriod, at most for drain.MaxWait. check lets only some requests pass.
func serve(ctx context.Context, listener net.Listener, config *tls.Config, name string, check func(http.Handler) http.Handler, handler http.Handler) error {
	handler, awaitQuiet := drain.Handler(ctx, handler)
	server := &http.Server{
		Handler:           check(otelhttp.NewHandler(handler, name)),
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
	awaitQuiet()
	if err := server.Shutdown(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("drain requests: %w", err)
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
