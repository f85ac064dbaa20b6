package process

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/internal/apiconnection"
	"github.com/breakwater-dev/breakwater/internal/pagedlist"
)

const (
	// clientQPS and clientBurst are the defaults of environment variables
	// KUBE_API_QPS and KUBE_API_BURST. They replace the client's rate limit of 5
	// requests a second, which would delay a burst of verdicts. The priority level
	// of the process limits them at the API server.
	clientQPS   = 200
	clientBurst = 400
	// clientTimeout limits one request to the API server, so that an event is
	// answered before the timeout of its Trigger. The API server lets a request wait in its
	// priority level for a quarter of this, and then rejects it.
	clientTimeout = 10 * time.Second
)

// Clients are the Kubernetes clients of a process.
type Clients struct {
	Kube   kubernetes.Interface
	Change versioned.Interface
	// Config is the configuration of both, for creating other clients.
	Config *rest.Config
	// RateLimitReplicas is the number of processes that share the rate limit of the server.
	RateLimitReplicas int
}

// NewClients returns clients for the cluster of the process or of the kubeconfig.
// The user agent identifies the process in the API server's audit log and as field
// manager.
func NewClients(kubeconfig, userAgent string) (Clients, error) {
	apiconnection.DetectLoss()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return Clients{}, fmt.Errorf("load kubeconfig: %w", err)
	}
	config.UserAgent = userAgent
	qps, err := number("KUBE_API_QPS", clientQPS)
	if err != nil {
		return Clients{}, err
	}
	burst, err := number("KUBE_API_BURST", clientBurst)
	if err != nil {
		return Clients{}, err
	}
	replicas, err := number("RATE_LIMIT_REPLICAS", 1)
	if err != nil {
		return Clients{}, err
	}
	config.QPS, config.Burst, config.Timeout = float32(qps), burst, clientTimeout
	pagedlist.LimitPages(config)
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return Clients{}, fmt.Errorf("create client: %w", err)
	}
	change, err := versioned.NewForConfig(config)
	if err != nil {
		return Clients{}, fmt.Errorf("create client: %w", err)
	}
	return Clients{Kube: kube, Change: change, Config: config, RateLimitReplicas: replicas}, nil
}

// number returns the value of an environment variable, which must be positive, or the
// default if it is not set.
func number(name string, byDefault int) (int, error) {
	value := os.Getenv(name)
	if value == "" {
		return byDefault, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("environment variable %s is %q: use a whole number of at least 1", name, value)
	}
	return n, nil
}
