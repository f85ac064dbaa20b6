package main

import (
	"context"
	"fmt"

	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/deadletter"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/process"
)

// buildDeadletter builds function deadletter, which receives undelivered events: it stores
// verdicts in the inbox of their release, and reports other events on their object.
func buildDeadletter(_ context.Context, clients process.Clients) (process.Program, error) {
	meter := metrics.Meter()
	objects, err := dynamic.NewForConfig(clients.Config)
	if err != nil {
		return process.Program{}, fmt.Errorf("create client: %w", err)
	}
	secrets := clients.Kube.CoreV1()
	verifiers := deadletter.Verifiers{
		Verdicts: eventsigning.NewVerdictStore(secrets, clock.RealClock{}), Events: eventsigning.NewEventStore(secrets, clock.RealClock{}),
	}
	function := deadletter.New(clients.Change, clients.Kube, objects, verifiers, clock.RealClock{}, meter)
	return process.Program{Handler: functions.NewReceiver("deadletter", 20, function, clock.RealClock{}, meter)}, nil
}
