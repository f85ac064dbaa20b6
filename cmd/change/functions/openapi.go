package main

import (
	"context"
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/functions/rollbackapi"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/process"
)

// buildOpenAPI builds service openapi, which lists suspended workloads and accepts rollback requests.
func buildOpenAPI(_ context.Context, clients process.Clients) (process.Program, error) {
	objects, err := dynamic.NewForConfig(clients.Config)
	if err != nil {
		return process.Program{}, fmt.Errorf("create client: %w", err)
	}
	handler := rollbackapi.New(rollbackapi.Options{
		Kube: clients.Kube, Dynamic: objects, Change: clients.Change,
		Clock: clock.RealClock{}, Meter: metrics.Meter(),
	})
	return process.Program{Handler: handler}, nil
}
