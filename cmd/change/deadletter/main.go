// The function deadletter takes what could not be delivered: verdicts go to the
// inbox of their release, the rest is shown on its object.
package main

import (
	"context"
	"fmt"
	"log"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
	"knative.dev/pkg/signals"

	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/deadletter"
	"github.com/breakwater-dev/breakwater/internal/metrics"
)

const name = "deadletter"

func main() {
	if err := functions.Run(signals.NewContext(), name, build); err != nil {
		log.Fatal(err)
	}
}

func build(_ context.Context, clients functions.Clients) (functions.Parts, error) {
	meter := metrics.Meter()
	objects, err := dynamic.NewForConfig(clients.Config)
	if err != nil {
		return functions.Parts{}, fmt.Errorf("create client: %w", err)
	}
	function := deadletter.New(clients.Change, clients.Kube, objects, clock.RealClock{}, meter)
	return functions.Parts{Handler: functions.NewReceiver(name, function, clock.RealClock{}, meter)}, nil
}
