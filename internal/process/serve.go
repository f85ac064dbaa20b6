package process

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/metric/noop"
	"golang.org/x/sync/errgroup"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/internal/connlimit"
	"github.com/breakwater-dev/breakwater/internal/drain"
)

// Timeouts of the HTTP server. Regular requests stay below them: bodies are small, and
// a Trigger has its own timeout.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	// maxHeaderBytes is enough for CloudEvents in binary mode with extensions.
	maxHeaderBytes = 16 << 10
	// DrainTimeout limits how long a terminating process completes its requests. It
	// exceeds the time that a function may work on an event.
	DrainTimeout = 45 * time.Second
	// FlushTimeout limits the export of the last metrics and spans.
	FlushTimeout = 5 * time.Second
)

// Program is what a process serves and runs.
type Program struct {
	// Handler serves all requests except those to HealthPath.
	Handler http.Handler
	// TLS, if set, is the configuration of the server, which then answers plain HTTP with
	// 400.
	TLS *tls.Config
	// MaxUnauthenticated, if not 0, limits the open connections on which no request called
	// connlimit.Authenticated. A further connection closes the oldest one. Port 8080 has a health check without the limit.
	MaxUnauthenticated int
	// Endpoint: the process is an endpoint of a Service. When it terminates, it serves until its clients have learned
	// of it; its Background functions end before. For a function, the queue-proxy of Knative does this.
	Endpoint bool
	// Background functions run until their context ends. An error of one ends the
	// process.
	Background []func(context.Context) error
	// AfterDrain, if set, runs at the end, after all requests were answered. It does not run
	// if they take longer than DrainTimeout.
	AfterDrain func(context.Context)
}

// Serve serves on the listener until ctx ends, for an endpoint of a Service also until no request has arrived for
// drain.QuietPeriod, at most for drain.MaxWait. Then it completes the requests in flight.
func Serve(ctx context.Context, listener net.Listener, name string, program Program) error {
	mux := healthHandler()
	// Without its metrics: they have the Host of a request, which a sender without a token chooses.
	mux.Handle("/", otelhttp.NewHandler(program.Handler, name, otelhttp.WithMeterProvider(noop.NewMeterProvider())))

	// Requests inherit the logger of ctx but not its end, because they are drained.
	base := context.WithoutCancel(ctx)
	handler, awaitQuiet := http.Handler(mux), func() {}
	if program.Endpoint {
		handler, awaitQuiet = drain.Handler(ctx, mux)
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		BaseContext:       func(net.Listener) context.Context { return base },
	}
	if program.MaxUnauthenticated > 0 {
		connlimit.New(program.MaxUnauthenticated).Apply(server)
	}
	if program.TLS != nil {
		listener = tls.NewListener(listener, program.TLS)
	}
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	for _, run := range program.Background {
		group.Go(func() error { return run(gctx) })
	}
	group.Go(func() error {
		<-gctx.Done()
		if ctx.Err() != nil { // otherwise a part has failed
			awaitQuiet()
		}
		shutdown, cancel := context.WithTimeout(base, DrainTimeout)
		defer cancel()
		if err := server.Shutdown(shutdown); err != nil {
			return fmt.Errorf("drain requests: %w", err)
		}
		if program.AfterDrain != nil {
			program.AfterDrain(base)
		}
		return nil
	})
	logging.FromContext(ctx).Infow("Serving", "process", name, "address", listener.Addr().String())
	return group.Wait()
}
