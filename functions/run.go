package functions

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"knative.dev/pkg/logging"
)

// Run is the life of a function's process: logging, telemetry, clients, the
// parts that build makes of them, then serving until ctx ends. PORT is the
// port to serve on (Knative Serving sets it; default 8080), KUBECONFIG names a
// cluster when the process runs outside one.
func Run(ctx context.Context, name string, build func(context.Context, Clients) (Parts, error)) (err error) {
	logger, err := NewLogger(name)
	if err != nil {
		return err
	}
	defer func() { _ = logger.Sync() }() // stderr of a container cannot be synced; there is nobody to tell
	ctx = logging.WithLogger(ctx, logger)

	flush, err := SetUpTelemetry(ctx, name)
	if err != nil {
		return err
	}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		err = errors.Join(err, flush(last))
	}()

	clients, err := NewClients(os.Getenv("KUBECONFIG"), name)
	if err != nil {
		return err
	}
	parts, err := build(ctx, clients)
	if err != nil {
		return err
	}
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", ":"+port)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return Serve(ctx, listener, name, parts)
}
