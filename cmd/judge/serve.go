package main

import (
	"context"
	"fmt"
	"io"

	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/events/delivery/broker"
	"github.com/breakwater-dev/breakwater/functions"
	functionjudge "github.com/breakwater-dev/breakwater/functions/judge"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/process"
)

// serveName is the name of the process in logs, metrics and the audit log.
const serveName = "judge"

// serve runs function judge until ctx ends.
func serve(ctx context.Context, args []string, _, _ io.Writer) (int, error) {
	if len(args) > 0 {
		return exitError, fmt.Errorf("serve has no flags, got %q", args)
	}
	if err := process.Run(ctx, serveName, build); err != nil {
		return exitError, err
	}
	return exitPass, nil
}

func build(ctx context.Context, clients process.Clients) (process.Program, error) {
	sender, follow, err := broker.NewStandaloneSender(ctx, clients.Config)
	if err != nil {
		return process.Program{}, err
	}
	core, wall, meter := clients.Kube.CoreV1(), clock.RealClock{}, metrics.Meter()
	function := functionjudge.New(functionjudge.Options{
		Change: clients.Change, Kube: clients.Kube, CurrentSource: functionjudge.NewSources(core, wall).Source,
		Broker: sender, Signer: eventsigning.NewNamedStore(core, eventsigning.JudgeSecretName, wall),
		Verifier: eventsigning.NewEventStore(core, wall), Clock: wall, Meter: meter,
	})
	return process.Program{
		Handler:    functions.NewReceiver(serveName, 100, function, wall, meter),
		Background: []func(context.Context) error{follow, sender.Run},
	}, nil
}
