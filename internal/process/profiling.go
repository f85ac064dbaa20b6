package process

import (
	"context"
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
	return serveUntilEnd(ctx, profilingServer(), listener)
}

func profilingServer() *http.Server {
	server := runtime.NewProfilingServer()
	server.SetEnabled(true)
	return server.Server
}
