package functions

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"golang.org/x/sync/errgroup"
	"knative.dev/pkg/logging"
)

// Times of the HTTP server. Nobody who is honest needs longer: bodies are
// small, and a Trigger gives up after its own timeout.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// drainTimeout is how long a process that was told to stop finishes what
	// it began.
	drainTimeout = wakeUpTimeout + 5*time.Second
	// flushTimeout is how long the last metrics and spans may take.
	flushTimeout = 5 * time.Second
)

// HealthPath answers 200 as long as the process serves. It asks nobody: a
// function that cannot reach the API server answers 503 to the event, and
// taking it out of service would only hide why.
const HealthPath = "/healthz"

// Parts are what a process of ours does.
type Parts struct {
	// Handler serves requests, except those to HealthPath.
	Handler http.Handler
	// Background are functions that run until their context ends. An error of one
	// ends the process.
	Background []func(context.Context) error
}

// Serve serves on the listener until ctx ends, then finishes the requests that
// it has.
func Serve(ctx context.Context, listener net.Listener, name string, parts Parts) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+HealthPath, func(http.ResponseWriter, *http.Request) {})
	mux.Handle("/", otelhttp.NewHandler(parts.Handler, name))

	// Requests keep the logger, but not the end of ctx: they are drained.
	base := context.WithoutCancel(ctx)
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		BaseContext:       func(net.Listener) context.Context { return base },
	}
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	for _, run := range parts.Background {
		group.Go(func() error { return run(gctx) })
	}
	group.Go(func() error {
		<-gctx.Done()
		drain, cancel := context.WithTimeout(base, drainTimeout)
		defer cancel()
		if err := server.Shutdown(drain); err != nil {
			return fmt.Errorf("drain: %w", err)
		}
		return nil
	})
	logging.FromContext(ctx).Infow("serving", "function", name, "address", listener.Addr().String())
	return group.Wait()
}
