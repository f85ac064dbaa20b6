// The function verdict stores what the server said of a batch on its ChangePod.
package main

import (
	"context"
	"log"

	"k8s.io/utils/clock"
	"knative.dev/pkg/signals"

	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/verdict"
	"github.com/breakwater-dev/breakwater/internal/metrics"
)

const name = "verdict"

func main() {
	if err := functions.Run(signals.NewContext(), name, build); err != nil {
		log.Fatal(err)
	}
}

func build(_ context.Context, clients functions.Clients) (functions.Parts, error) {
	meter := metrics.Meter()
	recorder := verdict.NewRecorder(clients.Change, clock.RealClock{}, meter)
	function := verdict.New(recorder, functions.NewCachedClientSource(clients.Kube))
	return functions.Parts{Handler: functions.NewReceiver(name, function, clock.RealClock{}, meter)}, nil
}
