package main

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/submit"
	"github.com/breakwater-dev/breakwater/functions/verdict"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/process"
)

// buildSubmit builds function submit, which calls the server for a release: it opens the order, and
// calls the start and the finish of its batches.
func buildSubmit(_ context.Context, clients process.Clients) (process.Program, error) {
	meter := metrics.Meter()
	recorder := verdict.NewRecorder(clients.Change, clock.RealClock{}, meter)
	function := submit.New(clients.Change, functions.NewReplicaClientSource(clients.Kube, clients.RateLimitReplicas), recorder,
		eventsigning.NewEventStore(clients.Kube.CoreV1(), clock.RealClock{}), clock.RealClock{}, meter)
	return process.Program{Handler: functions.NewReceiver("submit", 50, function, clock.RealClock{}, meter)}, nil
}
