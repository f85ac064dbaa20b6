// The function report keeps the server informed of releases.
package main

import (
	"context"
	"log"

	"k8s.io/utils/clock"
	"knative.dev/pkg/signals"

	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/report"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/process"
)

const name = "report"

func main() {
	if err := process.Run(signals.NewContext(), name, build); err != nil {
		log.Fatal(err)
	}
}

func build(_ context.Context, clients process.Clients) (process.Parts, error) {
	meter := metrics.Meter()
	function := report.New(clients.Change, functions.NewCachedClientSource(clients.Kube), clock.RealClock{}, meter)
	return process.Parts{Handler: functions.NewReceiver(name, function, clock.RealClock{}, meter)}, nil
}
