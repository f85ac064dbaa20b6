package main

import (
	"context"

	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/functions"
	"github.com/breakwater-dev/breakwater/functions/notify"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/process"
)

// buildNotify builds function notify, which sends messages about releases to a webhook.
func buildNotify(_ context.Context, clients process.Clients) (process.Program, error) {
	meter, core := metrics.Meter(), clients.Kube.CoreV1()
	notifier := notify.New(core, eventsigning.NewEventStore(core, clock.RealClock{}), clock.RealClock{}, meter)
	return process.Program{
		Handler:    functions.NewReceiver("notify", 10, notifier.Handle, clock.RealClock{}, meter),
		Background: []func(context.Context) error{notifier.Run},
		AfterDrain: notifier.AfterDrain,
	}, nil
}
