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

// testCluster is shared by the tests, which run on the node.
var testCluster *setup.Cluster

// prepare installs the double of a provider, allows the centre to call it, and registers
// the permission sets: "web" is granted, "wrong" is denied.
func prepare(ctx context.Context) error {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return err
	}
	config.QPS, config.Burst = -1, 0
	config.WarningHandler = rest.NoWarnings{}
	var output bytes.Buffer // printed only on errors
	if testCluster, err = setup.Install(ctx, kubernetes.NewForConfigOrDie(config), "../../..", &output); err != nil {
		return fmt.Errorf("%w: %s", err, output.String())
	}
	if err := configure(ctx, shortSettings); err != nil {
		return err
	}
	return testCluster.Register(ctx, setup.WebObjects()...)
}
