package controlplane

import (
	"context"
	"errors"
	"os"

	"knative.dev/pkg/injection"

	"github.com/breakwater-dev/breakwater/admission/server"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Part is a part of Breakwater that is installed alone.
type Part struct {
	// Manifests is its folder of manifests.
	Manifests string
	// Configs is the prefix of its ConfigMaps of logging, observability and leader election.
	Configs string
	// Webhooks is its process of webhooks, Configuration their ValidatingWebhookConfiguration.
	Webhooks      server.Options
	Configuration string
	// Controllers are those of its component Component.
	Component   string
	Controllers []injection.ControllerConstructor
}

// StartPart starts a control plane with a part, its webhooks and its controllers. The
// self-check does not run: there are no replicas that it could check. Importing a part
// registers its informers, so a process of tests imports one part.
func StartPart(ctx context.Context, part Part) (*ControlPlane, error) {
	if err := errors.Join(os.Setenv("SYSTEM_NAMESPACE", v1alpha1.SystemNamespace), os.Setenv("POD_NAME", replica),
		os.Setenv("CONFIG_LOGGING_NAME", part.Configs+"-logging"),
		os.Setenv("CONFIG_OBSERVABILITY_NAME", part.Configs+"-observability"),
		os.Setenv("CONFIG_LEADERELECTION_NAME", part.Configs+"-leader-election")); err != nil {
		return nil, err
	}
	p, err := Start(ctx)
	if err != nil {
		return nil, err
	}
	err = p.Install(ctx, part.Manifests)
	if err == nil {
		err = p.Serve(ctx, part.Webhooks, part.Configuration)
	}
	if err == nil {
		err = p.Run(part.Component, part.Controllers)
	}
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}
