//go:build controlplane

package cost

import (
	"context"
	"os"
	"testing"

	admission "github.com/breakwater-dev/breakwater/admission/change"
	"github.com/breakwater-dev/breakwater/events/delivery/broker"
	"github.com/breakwater-dev/breakwater/reconciler/change"
	"github.com/breakwater-dev/breakwater/test/controlplane"
)

// plane is the control plane of the tests.
var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, func(ctx context.Context) (*controlplane.ControlPlane, error) {
		p, err := controlplane.StartPart(ctx, controlplane.Part{
			Manifests: "config/core", Configs: "config",
			Webhooks: admission.Options(), Configuration: admission.Configuration,
			Component: change.Component, Controllers: change.Controllers(&broker.SharedSender{}),
		})
		plane = p
		return p, err
	}))
}
