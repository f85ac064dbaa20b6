package controlplane

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/configmap/informer"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/injection/sharedmain"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/admission/server"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/leaderelection"
	"github.com/breakwater-dev/breakwater/test/freeport"
)

// replica is the name of the pod that this process stands for.
const replica = "controlplane"

// readyTimeout bounds the time until a component works.
const readyTimeout = time.Minute

// Serve runs a process of webhooks in this process, until Stop. It returns when the
// API server can call the webhooks of the ValidatingWebhookConfiguration.
func (p *ControlPlane) Serve(ctx context.Context, process server.Options, configuration string) error {
	kube, err := kubernetes.NewForConfig(p.config)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	service, err := kube.CoreV1().Services(v1alpha1.SystemNamespace).Get(ctx, process.Service, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get Service: %w", err)
	}
	port, err := freeport.Find(ctx)
	if err != nil {
		return err
	}
	if err := registerReplica(ctx, kube, process.Service); err != nil {
		return err
	}
	p.ports[process.Service] = port
	p.proxy.route(net.JoinHostPort(service.Spec.ClusterIP, "443"), port)
	own, controllers, _ := process.Controllers(p.ctx, port)
	if err := p.run(own, process.Component, controllers); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		config, err := kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, configuration, metav1.GetOptions{})
		if err != nil {
			return false, fmt.Errorf("get %s: %w", configuration, err)
		}
		for _, w := range config.Webhooks {
			if len(w.ClientConfig.CABundle) == 0 {
				return false, nil
			}
		}
		return listens(ctx, port), nil
	})
}

// registerReplica makes this process the only replica of a Service of webhooks, as the
// controller manager does for pods. The controllers probe each replica.
func registerReplica(ctx context.Context, kube kubernetes.Interface, service string) error {
	_, err := kube.DiscoveryV1().EndpointSlices(v1alpha1.SystemNamespace).Create(ctx, &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name:   service + "-" + replica,
			Labels: map[string]string{discoveryv1.LabelServiceName: service, discoveryv1.LabelManagedBy: replica},
		},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("https-webhook"), Port: new(int32(8443))}},
		// No connection is made to the address, which is reserved for documentation:
		// the only replica is always the one that the API server calls.
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{"192.0.2.1"}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: v1alpha1.SystemNamespace, Name: replica},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create EndpointSlice of %s: %w", service, err)
	}
	return nil
}

// Run runs controllers, as a separate process would, until Stop.
func (p *ControlPlane) Run(component string, controllers []injection.ControllerConstructor) error {
	return p.run(p.ctx, component, controllers)
}

// run does what sharedmain does for a process, but without ports, which the components
// would share, and without settings of the whole process (logger of klog, metrics,
// signals). It returns when the caches are filled.
func (p *ControlPlane) run(ctx context.Context, component string, constructors []injection.ControllerConstructor) error {
	logger, err := p.logger(component)
	if err != nil {
		return err
	}
	constructors, _ = leaderelection.Join(component, constructors...)
	ctx = sharedmain.WithHADisabled(logging.WithLogger(ctx, logger))
	ctx, startInformers := injection.EnableInjectionOrDie(ctx, p.As(component))
	configs := informer.NewInformedWatcher(kubeclient.Get(ctx), v1alpha1.SystemNamespace)
	controllers, _ := sharedmain.ControllersAndWebhooksFromCtors(ctx, configs, constructors...)
	if err := configs.Start(ctx.Done()); err != nil {
		return fmt.Errorf("start ConfigMaps of %s: %w", component, err)
	}
	startInformers()
	go func() {
		if err := controller.StartAll(ctx, controllers...); err != nil {
			logger.Errorw("the controllers ended", "error", err)
		}
	}()
	return nil
}

// As returns the configuration of the component's ServiceAccount.
func (p *ControlPlane) As(component string) *rest.Config {
	config := rest.CopyConfig(p.config)
	config.QPS, config.Burst = 5000, 10000 // as in the Deployments
	config.UserAgent = component
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + v1alpha1.SystemNamespace + ":" + component,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + v1alpha1.SystemNamespace,
			"system:authenticated", componentsGroup},
	}
	p.requests.count(config, component)
	return config
}

func (p *ControlPlane) logger(component string) (*zap.SugaredLogger, error) {
	if err := os.MkdirAll(p.Logs(), 0o755); err != nil {
		return nil, err
	}
	config := zap.NewProductionConfig()
	config.OutputPaths = []string{filepath.Join(p.Logs(), component+".log")}
	logger, err := config.Build()
	if err != nil {
		return nil, fmt.Errorf("create logger of %s: %w", component, err)
	}
	return logger.Sugar().Named(component), nil
}

func listens(ctx context.Context, port int) bool {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	_ = connection.Close()
	return true
}
