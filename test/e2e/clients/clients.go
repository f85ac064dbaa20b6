// Package clients connects the tests to the cluster of the kubeconfig.
package clients

import (
	"fmt"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned"
)

// Clients are the clients of the cluster.
type Clients struct {
	Kube       kubernetes.Interface
	Breakwater versioned.Interface
	Dynamic    dynamic.Interface
}

// Require is Connect; an error ends the test.
func Require(t testing.TB) *Clients {
	t.Helper()
	c, err := Connect()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Connect returns the clients. Several tests poll at once, so the clients have a high
// limit. Warnings of the API server would only clutter the output.
func Connect() (*Clients, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the kubeconfig: %w", err)
	}
	config.QPS, config.Burst = 200, 400
	config.WarningHandler = rest.NoWarnings{}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	breakwater, err := versioned.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &Clients{kube, breakwater, objects}, nil
}
