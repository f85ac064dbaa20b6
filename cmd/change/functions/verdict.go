package main

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/verdict"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/process"
)

// buildVerdict builds function verdict, which stores the verdict of the server for a batch on its
// ChangePod.
func buildVerdict(_ context.Context, clients process.Clients) (process.Parts, error) {
	meter := metrics.Meter()
	recorder := verdict.NewRecorder(clients.Change, clock.RealClock{}, meter)
	secrets := clients.Kube.CoreV1()
	function := verdict.New(recorder, functions.NewCachedClientSource(clients.Kube),
		eventsigning.NewStore(secrets, clock.RealClock{}), eventsigning.NewJudgeKeys(secrets, clock.RealClock{}))
	return process.Parts{Handler: functions.NewReceiver("verdict", function, clock.RealClock{}, meter)}, nil
}
