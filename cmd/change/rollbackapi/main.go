// The service openapi says what is suspended, and takes the wish to go back.
package main

import (
	"context"
	"fmt"
	"log"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"knative.dev/pkg/signals"

	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/rollbackapi"
	"github.com/breakwater-dev/breakwater/internal/metrics"
)

const name = "openapi"

func main() {
	if err := functions.Run(signals.NewContext(), name, build); err != nil {
		log.Fatal(err)
	}
}

func build(_ context.Context, clients functions.Clients) (functions.Parts, error) {
	objects, err := dynamic.NewForConfig(clients.Config)
	if err != nil {
		return functions.Parts{}, fmt.Errorf("create client: %w", err)
	}
	handler := rollbackapi.New(rollbackapi.Options{
		Kube: clients.Kube, Dynamic: objects, Change: clients.Change,
		Clock: clock.RealClock{}, Meter: metrics.Meter(),
	})
	return functions.Parts{Handler: handler}, nil
}
