//go:build controlplane

package change

import (
	"context"
	"os"
	"testing"

	admission "github.com/breakwater-dev/breakwater/admission/change"
	"github.com/breakwater-dev/breakwater/events/delivery/broker"
	"github.com/breakwater-dev/breakwater/reconciler/certificates"
	"github.com/breakwater-dev/breakwater/reconciler/change"
	"github.com/breakwater-dev/breakwater/test/controlplane"
)

// plane is the control plane of the tests.
var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(controlplane.Main(m, func(ctx context.Context) (*controlplane.ControlPlane, error) {
		webhooks := admission.Options()
		webhooks.Others = append(webhooks.Others, certificates.NewController(certificates.CertsOfChange()))
		p, err := controlplane.StartPart(ctx, controlplane.Part{
			Manifests: "config/core", Configs: "config",
			Webhooks: webhooks, Configuration: admission.Configuration,
			Component: change.Component, Controllers: change.Controllers(&broker.SharedSender{}),
		})
		plane = p
		return p, err
	}))
}
