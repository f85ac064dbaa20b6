package protection

import (
	"context"
	"fmt"
	"os"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection/sharedmain"

	"github.com/breakwater-dev/breakwater/admission/protection/budget"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/leaderelection"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

const (
	// controllerComponent is the process that computes budgets.
	controllerComponent = "protection-controller"
	// leaseTimeoutEnv is the environment variable with the time after which budgets deny if a
	// Lease of the controller is not renewed.
	leaseTimeoutEnv = "CONTROLLER_LEASE_TIMEOUT"
	// defaultLeaseTimeout is several times the duration of a change of leader.
	defaultLeaseTimeout = time.Minute
	// minLeaseTimeout exceeds the time after which another replica acquires the Lease of a
	// crashed replica.
	minLeaseTimeout = 30 * time.Second
)

// parseLeaseTimeout parses the value of the environment variable; 0 is no limit.
func parseLeaseTimeout(value string) (time.Duration, error) {
	if value == "" {
		return defaultLeaseTimeout, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil || d != 0 && d < minLeaseTimeout {
		return 0, fmt.Errorf("environment variable %s is %q: write 0, or a duration of at least %s, for example 1m", leaseTimeoutEnv, value, minLeaseTimeout)
	}
	return d, nil
}

// watchController watches the Leases of the controller; nil if their age has no limit.
func watchController(ctx context.Context) (leases *budget.ControllerLeases, synced []cache.InformerSynced, err error) {
	limit, err := parseLeaseTimeout(os.Getenv(leaseTimeoutEnv))
	if err != nil || limit == 0 {
		return nil, nil, err
	}
	// Both processes read the same ConfigMap.
	config, err := sharedmain.GetLeaderElectionConfig(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read the leader election configuration: %w", err)
	}
	names := make([]string, config.Buckets)
	for i := range config.Buckets {
		names[i] = leaderelection.LeaseName(controllerComponent, i, config.Buckets)
	}
	leases = budget.NewControllerLeases(clock.RealClock{}, limit, names...)
	observe := func(obj any) {
		if l, ok := wiring.Object[*coordinationv1.Lease](obj); ok && l.Spec.RenewTime != nil {
			var acquired time.Time
			if l.Spec.AcquireTime != nil {
				acquired = l.Spec.AcquireTime.Time
			}
			leases.Observe(l.Name, l.Spec.RenewTime.Time, acquired)
		}
	}
	for _, name := range names {
		// RBAC permits watching only these Leases, by name.
		factory := informers.NewSharedInformerFactoryWithOptions(kubeclient.Get(ctx), controller.GetResyncPeriod(ctx),
			informers.WithNamespace(v1alpha1.SystemNamespace),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) {
				o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
			}))
		handler, err := factory.Coordination().V1().Leases().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: observe, UpdateFunc: func(_, after any) { observe(after) },
		})
		if err != nil {
			return nil, nil, fmt.Errorf("watch Lease %s: %w", name, err)
		}
		synced = append(synced, handler.HasSynced)
		factory.Start(ctx.Done())
	}
	return leases, synced, nil
}
