// The function verdict stores verdicts on ChangePods and ChangeWorkloads.
package main

import (
	"context"
	"log"

	"k8s.io/utils/clock"
	"knative.dev/pkg/signals"

	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/verdict"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/process"
)

const name = "verdict"

func main() {
	if err := process.Run(signals.NewContext(), name, build); err != nil {
		log.Fatal(err)
	}
}

func build(_ context.Context, clients process.Clients) (process.Parts, error) {
	meter := metrics.Meter()
	recorder := verdict.NewRecorder(clients.Change, clock.RealClock{}, meter)
	secrets := clients.Kube.CoreV1()
	function := verdict.New(recorder, functions.NewCachedClientSource(clients.Kube),
		eventsigning.NewStore(secrets, clock.RealClock{}), eventsigning.NewJudgeKeys(secrets, clock.RealClock{}))
	return process.Parts{Handler: functions.NewReceiver(name, function, clock.RealClock{}, meter)}, nil
}
