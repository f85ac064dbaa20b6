//go:build controlplane

package cost

import (
	"context"
	"os"
	"testing"

	admission "github.com/breakwater-dev/breakwater/admission/change"
	"github.com/breakwater-dev/breakwater/events/delivery/broker"
	"github.com/breakwater-dev/breakwater/internal/releasetrace/traceexport"
	"github.com/breakwater-dev/breakwater/reconciler/change"
	"github.com/breakwater-dev/breakwater/test/controlplane"
)

// plane is the control plane of the tests. Traces are on in all of them: they cost no requests.
var (
	plane  *controlplane.ControlPlane
	traces collector
)

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, func(ctx context.Context) (*controlplane.ControlPlane, error) {
		p, err := controlplane.StartPart(ctx, controlplane.Part{
			Manifests: "config/core", Configs: "config",
			Webhooks: admission.Options(), Configuration: admission.Configuration,
			Component: change.Component, Controllers: traceexport.New(change.Component).Before(change.Controllers(&broker.SharedSender{})),
			Prepare: traces.start,
		})
		plane = p
		return p, err
	}))
}
