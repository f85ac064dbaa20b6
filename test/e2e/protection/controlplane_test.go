//go:build controlplane

package protection

import (
	"context"
	"os"
	"testing"
	"time"

	admission "github.com/breakwater-dev/breakwater/admission/protection"
	"github.com/breakwater-dev/breakwater/events/delivery/broker"
	"github.com/breakwater-dev/breakwater/reconciler/protection"
	"github.com/breakwater-dev/breakwater/test/controlplane"
)

// plane is the control plane of the tests.
var plane *controlplane.ControlPlane

// TestMain runs the tests with tag controlplane on a control plane of their own.
func TestMain(m *testing.M) {
	chargeTimeout := 30 * time.Second // half the default of the protection controller: a test waits until it is over
	os.Exit(controlplane.Main(m, func(ctx context.Context) (*controlplane.ControlPlane, error) {
		// A test waits for this time, which is the minimum.
		if err := os.Setenv("CONTROLLER_LEASE_TIMEOUT", "30s"); err != nil {
			return nil, err
		}
		p, err := controlplane.StartPart(ctx, controlplane.Part{
			Manifests: "config/protection", Configs: "config-protection",
			Webhooks: admission.Options(), Configuration: admission.Configuration,
			Component: protection.Component, Controllers: protection.Controllers(&chargeTimeout, &broker.SharedSender{}),
			// The webhooks deny until the controller has had 10 s to compute all budgets.
			Settled: 12 * time.Second,
		})
		plane = p
		return p, err
	}))
}
