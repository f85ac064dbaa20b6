//go:build e2e

package permission

import (
	"bytes"
	"context"
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/breakwater-dev/breakwater/test/provider/setup"
)

// bed is what the tests share; the tests run on the node.
var bed *setup.Cluster

// prepare installs the provider's double, lets the centre call it, and registers
// what the tests ask for: set "web" is granted, "wrong" denied.
func prepare(ctx context.Context) error {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = -1, 0
	config.WarningHandler = rest.NoWarnings{}
	var said bytes.Buffer // of interest only when it goes wrong
	if bed, err = setup.Install(ctx, kubernetes.NewForConfigOrDie(config), "../../..", &said); err != nil {
		return fmt.Errorf("%w: %s", err, said.String())
	}
	if err := configure(ctx, hurried); err != nil {
		return err
	}
	return bed.Register(ctx, setup.WebObjects()...)
}
