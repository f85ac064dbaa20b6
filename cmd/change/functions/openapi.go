package main

import (
	"context"
	"fmt"
	"path/filepath"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/functions/rollbackapi"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/process"
	"github.com/breakwater-dev/breakwater/internal/servingcert"
)

const (
	// certDir is where the manifest mounts the certificate of service openapi.
	certDir = "/etc/openapi/tls"
	// maxUnauthenticated limits the open connections without a valid token: each costs about
	// 40 KiB of the 256 MiB of the manifest.
	maxUnauthenticated = 256
)

// buildOpenAPI builds service openapi, which lists suspended workloads and accepts rollback requests.
func buildOpenAPI(_ context.Context, clients process.Clients) (process.Program, error) {
	return newOpenAPI(clients, certDir)
}

// newOpenAPI builds service openapi with the certificate of a folder.
func newOpenAPI(clients process.Clients, certDir string) (process.Program, error) {
	objects, err := dynamic.NewForConfig(clients.Config)
	if err != nil {
		return process.Program{}, fmt.Errorf("create client: %w", err)
	}
	handler := rollbackapi.New(rollbackapi.Options{
		Kube: clients.Kube, Dynamic: objects, Change: clients.Change,
		Clock: clock.RealClock{}, Meter: metrics.Meter(),
	})
	config := servingcert.ServerConfig(filepath.Join(certDir, "tls.crt"), filepath.Join(certDir, "tls.key"))
	servingcert.ObserveExpiry(metrics.Meter(), "openapi", config)
	return process.Program{Handler: handler, TLS: config, Endpoint: true, MaxUnauthenticated: maxUnauthenticated}, nil
}
