// The controller runs the reconcilers of changes and the self-check of config/core.
package main

import (
	"k8s.io/apimachinery/pkg/runtime"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/signals"

	"github.com/breakwater-dev/breakwater/events/delivery/broker"
	"github.com/breakwater-dev/breakwater/internal/leaderelection"
	"github.com/breakwater-dev/breakwater/internal/releasetrace/traceexport"
	"github.com/breakwater-dev/breakwater/internal/version"
	"github.com/breakwater-dev/breakwater/reconciler/change"
	"github.com/breakwater-dev/breakwater/reconciler/selfcheck"
)

// accepted are the content types that the API server may answer with. Every pod of a cluster is
// watched, and protobuf is cheaper to read; objects of CRDs have JSON only.
// Requests stay JSON.
const accepted = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON

func main() {
	version.ExitIfAsked()
	out, traces := &broker.SharedSender{}, traceexport.New(change.Component)
	config := injection.ParseAndGetRESTConfigOrDie()
	config.AcceptContentTypes = accepted
	leaderelection.Main(signals.NewContext(), change.Component, config, controllers(out, traces)...)
	out.Drain()
	traces.Flush()
}

// controllers are the constructors of all that runs here.
func controllers(out *broker.SharedSender, traces *traceexport.Exporter) []injection.ControllerConstructor {
	return traces.Before(append(change.Controllers(out), selfcheck.NewController(guards)))
}
