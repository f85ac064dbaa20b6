package controlplane

import (
	"context"
	"errors"
	"os"
	"time"

	admission "github.com/breakwater-dev/breakwater/admission/protection"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events/delivery/broker"
	"github.com/breakwater-dev/breakwater/reconciler/protection"
)

// chargeTimeout is the default of the protection controller.
const chargeTimeout = time.Minute

// StartProtection starts a control plane with config/protection, its webhooks and its
// controllers. The self-check does not run: there are no replicas that it could check.
func StartProtection(ctx context.Context) (*ControlPlane, error) {
	if err := errors.Join(os.Setenv("SYSTEM_NAMESPACE", v1alpha1.SystemNamespace), os.Setenv("POD_NAME", replica),
		os.Setenv("CONFIG_LOGGING_NAME", "config-protection-logging"),
		os.Setenv("CONFIG_OBSERVABILITY_NAME", "config-protection-observability"),
		os.Setenv("CONFIG_LEADERELECTION_NAME", "config-protection-leader-election")); err != nil {
		return nil, err
	}
	p, err := Start(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.installProtection(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

func (p *ControlPlane) installProtection(ctx context.Context) error {
	if err := p.Install(ctx, "config/protection"); err != nil {
		return err
	}
	if err := p.Serve(ctx, admission.Options(), admission.Configuration); err != nil {
		return err
	}
	timeout, out := chargeTimeout, &broker.SharedSender{}
	return p.Run(protection.Component, protection.Controllers(&timeout, out))
}
