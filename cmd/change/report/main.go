// The function report keeps the server informed of releases.
package main

import (
	"context"
	"log"

	"go.opentelemetry.io/otel"
	"k8s.io/utils/clock"
	"knative.dev/pkg/signals"

	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/report"
)

const name = "report"

func main() {
	if err := functions.Run(signals.NewContext(), name, build); err != nil {
		log.Fatal(err)
	}
}

func build(_ context.Context, clients functions.Clients) (functions.Parts, error) {
	meter := otel.Meter("github.com/breakwater-dev/breakwater/functions/" + name)
	function, err := report.New(clients.Change, functions.NewCachedClientSource(clients.Kube), clock.RealClock{}, meter)
	if err != nil {
		return functions.Parts{}, err
	}
	receiver, err := functions.NewReceiver(name, function, clock.RealClock{}, meter)
	return functions.Parts{Handler: receiver}, err
}
