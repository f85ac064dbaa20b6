package main

import (
	"context"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/events/delivery/broker"
	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/callback"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/process"
)

// buildCallback builds the callback, which receives the verdicts of the server and sends them to
// the Broker.
func buildCallback(ctx context.Context, clients process.Clients) (process.Program, error) {
	sender, follow, err := broker.NewStandaloneSender(ctx, clients.Config)
	if err != nil {
		return process.Program{}, err
	}
	config := rest.CopyConfig(clients.Config)
	config.Timeout = 0 // a timeout would end each watch
	watching, err := versioned.NewForConfig(config)
	if err != nil {
		return process.Program{}, err
	}
	batches, err := callback.NewBatches(watching)
	if err != nil {
		return process.Program{}, err
	}
	handler := callback.New(callback.Options{
		Change: clients.Change, Batches: batches, Server: functions.NewReplicaClientSource(clients.Kube, clients.RateLimitReplicas), Broker: sender,
		Signer: eventsigning.NewVerdictStore(clients.Kube.CoreV1(), clock.RealClock{}),
		Clock:  clock.RealClock{}, Meter: metrics.Meter(),
	})
	return process.Program{Handler: handler, Background: []func(context.Context) error{follow, sender.Run, batches.Run}}, nil
}
