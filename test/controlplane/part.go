package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"knative.dev/pkg/injection"

	"github.com/breakwater-dev/breakwater/admission/server"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/leaderelection"
)

// Part is a part of Breakwater that is installed alone.
type Part struct {
	// Manifests is its folder of manifests.
	Manifests string
	// Configs is the prefix of the names of its ConfigMaps for logging, observability and leader election.
	Configs string
	// Webhooks is the process that serves its webhooks, Configuration their ValidatingWebhookConfiguration.
	Webhooks      server.Options
	Configuration string
	// Component is the name of its process of controllers, Controllers the controllers in it.
	Component   string
	Controllers []injection.ControllerConstructor
	// Settled is how long Component has to have its only Lease before the tests begin.
	Settled time.Duration
	// Election replaces values of the ConfigMap of leader election.
	Election map[string]string
	// Prepare, if set, runs before the processes start.
	Prepare func(context.Context, *ControlPlane) error
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
	if err == nil && len(part.Election) > 0 {
		err = p.patchElection(ctx, part)
	}
	if err == nil && part.Prepare != nil {
		err = part.Prepare(ctx, p)
	}
	if err == nil {
		err = p.Serve(ctx, part.Webhooks, part.Configuration)
	}
	if err == nil {
		err = p.Run(part.Component, part.Controllers)
	}
	if err == nil && part.Settled > 0 {
		err = p.awaitLease(ctx, part.Component, part.Settled)
	}
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// patchElection changes the ConfigMap of leader election, which processes read when they start.
func (p *ControlPlane) patchElection(ctx context.Context, part Part) error {
	patch, err := json.Marshal(map[string]any{"data": part.Election})
	if err != nil {
		return fmt.Errorf("encode the values of leader election: %w", err)
	}
	return p.kubectl(ctx, "", "-n", v1alpha1.SystemNamespace, "patch", "configmap", part.Configs+"-leader-election", "--type=merge", "-p", string(patch))
}

// awaitLease waits until a component has had its only Lease for this long.
func (p *ControlPlane) awaitLease(ctx context.Context, component string, settled time.Duration) error {
	kube, err := kubernetes.NewForConfig(p.config)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	name := leaderelection.LeaseName(component, 0, 1)
	err = wait.PollUntilContextTimeout(ctx, time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
		l, err := kube.CoordinationV1().Leases(v1alpha1.SystemNamespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil || l.Spec.RenewTime == nil || l.Spec.AcquireTime == nil {
			return false, nil //nolint:nilerr // the component has not acquired it yet
		}
		return l.Spec.RenewTime.Sub(l.Spec.AcquireTime.Time) >= settled, nil
	})
	if err != nil {
		return fmt.Errorf("wait until Lease %s has one holder for %s: %w", name, settled, err)
	}
	return nil
}
