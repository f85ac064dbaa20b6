package certificates

import (
	"context"

	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/network"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/internal/wiring"
)

const queueName = "certificates"

// NewController returns the constructor of the controller of certs.
func NewController(certs ServingCerts) injection.ControllerConstructor {
	return func(ctx context.Context, _ configmap.Watcher) *controller.Impl {
		r := &Reconciler{
			LeaderAwareFuncs: reconciler.LeaderAwareFuncs{PromoteFunc: wiring.PromoteKeys(certs.key())}, ServingCerts: certs,
			Client: kubeclient.Get(ctx).CoreV1(), Domain: network.GetClusterDomainName(), Clock: clock.RealClock{},
		}
		return controller.NewContext(ctx, r, controller.ControllerOptions{
			WorkQueueName: queueName, Logger: logging.FromContext(ctx).Named(queueName), RateLimiter: wiring.RetryWithin(interval),
		})
	}
}
