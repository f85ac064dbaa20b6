// The protection controller runs the reconcilers of part protection and the self-check of
// config/protection. While it is down, budgets allow requests until the limit that it computed
// last is used up, for at most CONTROLLER_LEASE_TIMEOUT of protection-webhook.
package main

import (
	"flag"
	"time"

	"knative.dev/pkg/injection"
	"knative.dev/pkg/signals"

	"github.com/breakwater-dev/breakwater/events/delivery/broker"
	"github.com/breakwater-dev/breakwater/internal/leaderelection"
	"github.com/breakwater-dev/breakwater/internal/pagedlist"
	"github.com/breakwater-dev/breakwater/internal/version"
	"github.com/breakwater-dev/breakwater/internal/wiring"
	"github.com/breakwater-dev/breakwater/reconciler/protection"
	"github.com/breakwater-dev/breakwater/reconciler/selfcheck"
)

func main() {
	version.ExitIfAsked()
	chargeTimeout := flag.Duration("charge-timeout", time.Minute,
		"how long a charge of an unchanged pod is kept; at least the --request-timeout of the API server")
	out := &broker.SharedSender{}
	config := wiring.AcceptProtobuf(injection.ParseAndGetRESTConfigOrDie())
	pagedlist.LimitPages(config)
	leaderelection.Main(signals.NewContext(), protection.Component, config,
		append(protection.Controllers(chargeTimeout, out), selfcheck.NewController(guards))...)
	out.WaitUntilDrained()
}
