// Package process runs a process that serves HTTP: a function on Knative Serving, service
// openapi or the init-action-server. It sets up logging, telemetry and clients, and drains
// requests when the process ends.
package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"knative.dev/pkg/logging"
)

// Run runs a process: it sets up logging, telemetry and clients, calls build, and
// serves the program until ctx ends. Environment variable PORT is the port to serve on
// (set by Knative Serving; default 8080, which a program with MaxUnauthenticated cannot
// use), and KUBECONFIG names the cluster for a process outside of a cluster.
func Run(ctx context.Context, name string, build func(context.Context, Clients) (Program, error)) (err error) {
	logger, err := NewLogger(name)
	if err != nil {
		return err
	}
	defer func() { _ = logger.Sync() }() // fails on the stderr of a container
	ctx = logging.WithLogger(ctx, logger)

	config, err := observabilityConfig(observabilityPath)
	if err != nil {
		return err
	}
	flush, err := setUpTelemetry(ctx, name, config)
	if err != nil {
		return err
	}
	defer func() {
		flushCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), FlushTimeout)
		defer cancel()
		err = errors.Join(err, flush(flushCtx))
	}()

	clients, err := NewClients(os.Getenv("KUBECONFIG"), name)
	if err != nil {
		return err
	}
	program, err := build(ctx, clients)
	if err != nil {
		return err
	}
	program.Background = append(program.Background, servers(program.MaxUnauthenticated, config.Runtime.ProfilingEnabled())...)
	port := os.Getenv("PORT")
	if port == "" {
		port = "8080"
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", ":"+port)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	return Serve(ctx, listener, name, program)
}

// servers returns the servers of a process in addition to that of its program.
func servers(maxUnauthenticated int, profiling bool) (all []func(context.Context) error) {
	if profiling {
		all = append(all, runProfiling)
	}
	if maxUnauthenticated > 0 {
		all = append(all, runHealth)
	}
	return all
}
