package protection

import (
	"context"
	"os"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	"k8s.io/client-go/tools/cache"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/admission/protection/budget"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/webhookpeers"
)

// watches are what this process watches of other processes.
type watches struct {
	// self is the name of this pod.
	self string
	// leases are those of protection-controller; nil if their age has no limit.
	leases *budget.ControllerLeases
	// replicas lists the EndpointSlices of this webhook.
	replicas discoverylisters.EndpointSliceLister
	// synced report whether the first Leases and EndpointSlices were read.
	synced []cache.InformerSynced
}

func newWatches(ctx context.Context) (watches, error) {
	leases, synced, err := watchController(ctx)
	if err != nil {
		return watches{}, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(kubeclient.Get(ctx), controller.GetResyncPeriod(ctx),
		informers.WithNamespace(v1alpha1.SystemNamespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = labels.Set{discoveryv1.LabelServiceName: ServiceName}.String()
		}))
	replicas := factory.Discovery().V1().EndpointSlices()
	synced = append(synced, replicas.Informer().HasSynced)
	factory.Start(ctx.Done())
	return watches{self: os.Getenv("POD_NAME"), leases: leases, replicas: replicas.Lister(), synced: synced}, nil
}

// ready reports whether this process may become ready. A process that starts just after
// the controller acquired its Lease would deny requests that an earlier replica, which
// knows that there was no outage, allows. So it leaves the requests to that replica, if
// there is one, until it knows that the budgets are computed.
func (w watches) ready() bool {
	switch {
	case w.leases.StartLimitPassed():
		return true
	case slices.ContainsFunc(w.synced, func(synced cache.InformerSynced) bool { return !synced() }):
		return false
	default:
		return !w.leases.OutageUnknown() || !w.anotherReady()
	}
}

// anotherReady reports whether another replica is ready.
func (w watches) anotherReady() bool {
	ready := webhookpeers.ReadyAddresses(w.replicas)
	delete(ready, w.self)
	return len(ready) > 0
}
