// The controller runs the reconcilers of changes and the self-check of config/core.
package main

import (
	"knative.dev/pkg/injection"
	"knative.dev/pkg/signals"

	"github.com/breakwater-dev/breakwater/events/delivery/broker"
	"github.com/breakwater-dev/breakwater/internal/leaderelection"
	"github.com/breakwater-dev/breakwater/internal/pagedlist"
	"github.com/breakwater-dev/breakwater/internal/releasetrace/traceexport"
	"github.com/breakwater-dev/breakwater/internal/version"
	"github.com/breakwater-dev/breakwater/internal/wiring"
	"github.com/breakwater-dev/breakwater/reconciler/change"
	"github.com/breakwater-dev/breakwater/reconciler/selfcheck"
)

func main() {
	version.ExitIfAsked()
	out, traces := &broker.SharedSender{}, traceexport.New(change.Component)
	config := wiring.AcceptProtobuf(injection.ParseAndGetRESTConfigOrDie())
	pagedlist.LimitPages(config)
	leaderelection.Main(signals.NewContext(), change.Component, config, controllers(out, traces)...)
	out.WaitUntilDrained()
	traces.Flush()
}

// controllers are the constructors of all that runs here.
func controllers(out *broker.SharedSender, traces *traceexport.Exporter) []injection.ControllerConstructor {
	return traces.Before(append(change.Controllers(out), selfcheck.NewController(guards)))
}
