package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"knative.dev/pkg/logging"
	"knative.dev/pkg/observability/runtime"
)

// profilingAddress is the address of pprof. Port 8008, which controllers and webhooks use, is
// that of queue-proxy in the pod of a function.
const profilingAddress = ":8009"

// runProfiling serves pprof until ctx ends. That it cannot listen is only logged: the process has
// more important work.
func runProfiling(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", profilingAddress)
	if err != nil {
		logging.FromContext(ctx).Errorw("Could not serve pprof", "address", profilingAddress, "error", err)
		return nil
	}
	return serveProfiles(ctx, listener)
}

// serveProfiles serves pprof on the listener until ctx ends.
func serveProfiles(ctx context.Context, listener net.Listener) error {
	server := runtime.NewProfilingServer()
	server.SetEnabled(true)
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // closes the listener
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve pprof: %w", err)
	}
	return nil
}
