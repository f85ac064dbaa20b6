package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
)

// healthAddress is the address of the health check of a process with MaxUnauthenticated: on the other port a flood of
// connections would close those of probes.
const healthAddress = ":8080"

// HealthPath is the path of the health check, which answers 200 while the process
// serves. It does not check the API server: a function that cannot reach it answers
// 503 to events, and marking it unready would only hide the cause.
const HealthPath = "/healthz"

// runHealth serves the health check at healthAddress until ctx ends.
func runHealth(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", healthAddress)
	if err != nil {
		return fmt.Errorf("listen for probes: %w", err)
	}
	return serveUntilEnd(ctx, healthServer(), listener)
}

func healthServer() *http.Server {
	return &http.Server{Handler: healthHandler(), ReadHeaderTimeout: headerTimeout}
}

// serveUntilEnd serves on the listener until ctx ends, and drops the requests in flight then.
func serveUntilEnd(ctx context.Context, server *http.Server, listener net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // closes the listener
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", listener.Addr(), err)
	}
	return nil
}

func healthHandler() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+HealthPath, func(http.ResponseWriter, *http.Request) {})
	return mux
}
