package process

import (
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
)

const (
	// clientQPS and clientBurst replace the client's default rate limit of 5
	// requests a second, which would delay a burst of verdicts. The priority level
	// of the process limits them at the API server.
	clientQPS   = 100
	clientBurst = 200
	// clientTimeout limits one request to the API server, so that an event is
	// answered before the timeout of its Trigger.
	clientTimeout = 5 * time.Second
)

// Clients are the Kubernetes clients of a process.
type Clients struct {
	Kube   kubernetes.Interface
	Change versioned.Interface
	// Config is the configuration of both, for creating other clients.
	Config *rest.Config
}

// NewClients returns clients for the cluster of the process or of the kubeconfig.
// The user agent identifies the process in the API server's audit log and as field
// manager.
func NewClients(kubeconfig, userAgent string) (Clients, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return Clients{}, fmt.Errorf("load kubeconfig: %w", err)
	}
	config.UserAgent = userAgent
	config.QPS, config.Burst, config.Timeout = clientQPS, clientBurst, clientTimeout
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return Clients{}, fmt.Errorf("create client: %w", err)
	}
	change, err := versioned.NewForConfig(config)
	if err != nil {
		return Clients{}, fmt.Errorf("create client: %w", err)
	}
	return Clients{Kube: kube, Change: change, Config: config}, nil
}
