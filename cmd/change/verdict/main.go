// The function verdict stores what the server said of a batch on its ChangePod.
package main

import (
	"context"
	"log"

	"go.opentelemetry.io/otel"
	"k8s.io/utils/clock"
	"knative.dev/pkg/signals"

	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/verdict"
)

const name = "verdict"

func main() {
	if err := functions.Run(signals.NewContext(), name, build); err != nil {
		log.Fatal(err)
	}
}

func build(_ context.Context, clients functions.Clients) (functions.Parts, error) {
	meter := otel.Meter("github.com/breakwater-dev/breakwater/functions/" + name)
	recorder, err := verdict.NewRecorder(clients.Change, clock.RealClock{}, meter)
	if err != nil {
		return functions.Parts{}, err
	}
	function := verdict.New(recorder, functions.NewCachedClientSource(clients.Kube))
	receiver, err := functions.NewReceiver(name, function, clock.RealClock{}, meter)
	return functions.Parts{Handler: receiver}, err
}
