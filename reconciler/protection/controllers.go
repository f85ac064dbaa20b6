// Package protection lists the controllers of part protection.
package protection

import (
	"time"

	"knative.dev/pkg/injection"

	"github.com/breakwater-dev/breakwater/events/delivery/broker"
	"github.com/breakwater-dev/breakwater/reconciler/protection/budget"
	"github.com/breakwater-dev/breakwater/reconciler/protection/deletionflow"
	"github.com/breakwater-dev/breakwater/reconciler/protection/generatedbudget"
	"github.com/breakwater-dev/breakwater/reconciler/protection/namespacelabel"
)

// Component is the name of the process in logs, metrics, Leases and its logging config.
const Component = "protection-controller"

// Controllers returns the constructors of the controllers. chargeTimeout is how long a
// charge of an unchanged pod is kept; it is read after the flags are parsed. Events are
// sent with out.
func Controllers(chargeTimeout *time.Duration, out *broker.SharedSender) []injection.ControllerConstructor {
	return []injection.ControllerConstructor{
		budget.NewController(chargeTimeout),
		namespacelabel.NewController,
		generatedbudget.NewController,
		out.With(deletionflow.NewController),
	}
}
