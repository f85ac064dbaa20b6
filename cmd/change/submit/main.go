// The function submit calls the server for a release: it opens the order, and
// starts and finishes batches.
package main

import (
	"context"
	"log"

	"k8s.io/utils/clock"
	"knative.dev/pkg/signals"

	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/submit"
	"github.com/breakwater-dev/breakwater/functions/verdict"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/process"
)

const name = "submit"

func main() {
	if err := process.Run(signals.NewContext(), name, build); err != nil {
		log.Fatal(err)
	}
}

func build(_ context.Context, clients process.Clients) (process.Parts, error) {
	meter := metrics.Meter()
	recorder := verdict.NewRecorder(clients.Change, clock.RealClock{}, meter)
	function := submit.New(clients.Change, functions.NewCachedClientSource(clients.Kube), recorder, clock.RealClock{}, meter)
	return process.Parts{Handler: functions.NewReceiver(name, function, clock.RealClock{}, meter)}, nil
}
