package certificates

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/network"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

const queueName = "certificates"

// key is the only key of the queue.
var key = types.NamespacedName{Namespace: v1alpha1.SystemNamespace, Name: caName}

// NewController returns the controller of the certificates.
func NewController(ctx context.Context, _ configmap.Watcher) *controller.Impl {
	r := &Reconciler{
		LeaderAwareFuncs: reconciler.LeaderAwareFuncs{PromoteFunc: wiring.PromoteKeys(key)},
		Client:           kubeclient.Get(ctx).CoreV1(), Domain: network.GetClusterDomainName(), Clock: clock.RealClock{},
	}
	return controller.NewContext(ctx, r, controller.ControllerOptions{WorkQueueName: queueName, Logger: logging.FromContext(ctx).Named(queueName)})
}
