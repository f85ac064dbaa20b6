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
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/process"
)

const name = "deadletter"

func main() {
	if err := process.Run(signals.NewContext(), name, build); err != nil {
		log.Fatal(err)
	}
}

func build(_ context.Context, clients process.Clients) (process.Parts, error) {
	meter := metrics.Meter()
	objects, err := dynamic.NewForConfig(clients.Config)
	if err != nil {
		return process.Parts{}, fmt.Errorf("create client: %w", err)
	}
	function := deadletter.New(clients.Change, clients.Kube, objects,
		eventsigning.NewStore(clients.Kube.CoreV1(), clock.RealClock{}), clock.RealClock{}, meter)
	return process.Parts{Handler: functions.NewReceiver(name, function, clock.RealClock{}, meter)}, nil
}
