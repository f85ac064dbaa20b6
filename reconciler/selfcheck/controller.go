package selfcheck

import (
	"context"

	"go.opentelemetry.io/otel/metric"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	crdclient "knative.dev/pkg/client/injection/apiextensions/client"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/internal/eventrecorder"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

const (
	queueName = "selfcheck"
)

// NewController returns the constructor of the controller that checks a plan.
// The plan is built from the process's informers.
func NewController(plan func(context.Context) Plan) injection.ControllerConstructor {
	return func(ctx context.Context, _ configmap.Watcher) *controller.Impl {
		kube, logger := kubeclient.Get(ctx), logging.FromContext(ctx)
		objects, err := metadata.NewForConfig(injection.GetConfig(ctx))
		wiring.NewMust(ctx, "set up the self-check")(err)
		r := &Reconciler{
			LeaderAwareFuncs: reconciler.LeaderAwareFuncs{PromoteFunc: wiring.PromoteKeys(Key)},

			plan: plan(ctx), admission: kube.AdmissionregistrationV1(), endpoints: kube.DiscoveryV1(),
			unchanged: newUnchanged(objects, clock.RealClock{}),
			crds:      crdclient.Get(ctx).ApiextensionsV1().CustomResourceDefinitions(),
			presented: presented, recorder: eventrecorder.NewUnmerged(ctx, kube, eventrecorder.Breakwater), clock: clock.RealClock{},
		}
		measure(metrics.Meter(), r.metricValues)
		return controller.NewContext(ctx, r, controller.ControllerOptions{WorkQueueName: queueName, Logger: logger.Named(queueName)})
	}
}

// measure exposes unenforced guards as a metric. A replica that is not the
// leader exposes nothing.
func measure(meter metric.Meter, now func() map[string]int64) {
	metrics.Observe(meter, "breakwater_guard_unenforced", func(observe func(int64, ...string)) {
		for reason, value := range now() {
			observe(value, reason)
		}
	})
}
