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

// buildVerdict builds function verdict, which stores verdicts, and calls the finish of a batch whose
// PRE check passed.
func buildVerdict(_ context.Context, clients process.Clients) (process.Program, error) {
	meter := metrics.Meter()
	recorder, server := verdict.NewRecorder(clients.Change, clock.RealClock{}, meter), functions.NewReplicaClientSource(clients.Kube, clients.RateLimitReplicas)
	finisher := submit.NewFinisher(clients.Change, server, clock.RealClock{}, meter)
	recorder.SetFollower(finisher)
	secrets := clients.Kube.CoreV1()
	function := verdict.New(recorder, server,
		eventsigning.NewVerdictStore(secrets, clock.RealClock{}), eventsigning.NewJudgeKeys(secrets, clock.RealClock{}))
	return process.Program{
		Handler:    functions.NewReceiver("verdict", 20, function, clock.RealClock{}, meter),
		Background: []func(context.Context) error{finisher.Run},
		AfterDrain: finisher.AfterDrain,
	}, nil
}
