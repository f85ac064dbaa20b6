package functions

import (
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
)

const (
	// clientQPS and clientBurst keep the client's own throttle (5 a second by
	// default) out of the way of a burst of verdicts. How much the functions
	// may ask is the API server's to say: their priority level.
	clientQPS   = 100
	clientBurst = 200
	// clientTimeout bounds one request to the API server, so that an event is
	// answered before its Trigger gives up.
	clientTimeout = 5 * time.Second
)

// Clients are what a function reads and writes with.
type Clients struct {
	Kube   kubernetes.Interface
	Change versioned.Interface
	// Config made the two, for what needs a client of another kind.
	Config *rest.Config
}

// NewClients returns clients for the cluster that the process runs in, or that
// the kubeconfig names. The user agent tells the functions apart in the API
// server's audit log and as field managers.
func NewClients(kubeconfig, userAgent string) (Clients, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return Clients{}, fmt.Errorf("find the cluster: %w", err)
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
