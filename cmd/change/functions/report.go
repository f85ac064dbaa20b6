package main

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/report"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/process"
)

// buildReport builds function report, which keeps the server informed of releases.
func buildReport(_ context.Context, clients process.Clients) (process.Program, error) {
	meter := metrics.Meter()
	function := report.New(clients.Change, functions.NewReplicaClientSource(clients.Kube, clients.RateLimitReplicas),
		eventsigning.NewEventStore(clients.Kube.CoreV1(), clock.RealClock{}), clock.RealClock{}, meter)
	return process.Program{Handler: functions.NewReceiver("report", 50, function, clock.RealClock{}, meter)}, nil
}
