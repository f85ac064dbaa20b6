package deletionflow

import (
	"context"

	"go.opentelemetry.io/otel/metric"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	policyclient "github.com/breakwater-dev/breakwater/client/injection/client"
	flowinformer "github.com/breakwater-dev/breakwater/client/injection/informers/policy/v1alpha1/poddeletionflowcontrol"
	reconcilerflow "github.com/breakwater-dev/breakwater/client/injection/reconciler/policy/v1alpha1/poddeletionflowcontrol"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/checkedclock"
	"github.com/breakwater-dev/breakwater/internal/deletionwindow"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

// NewController returns the controller of PodDeletionFlowControls.
func NewController(ctx context.Context, _ configmap.Watcher, sender events.Sender) *controller.Impl {
	must := wiring.NewMust(ctx, "set up the controller of deletion flow control")
	flows := flowinformer.Get(ctx)
	registerGauges(metrics.Meter(), flows.Lister())
	now, err := checkedclock.New(injection.GetConfig(ctx), deletionwindow.DefaultSkew)
	must(err)
	r := &Reconciler{client: policyclient.Get(ctx).PolicyV1alpha1(), clock: now, skew: deletionwindow.DefaultSkew, sender: sender}
	impl := reconcilerflow.NewImpl(ctx, r, func(*controller.Impl) controller.Options {
		return controller.Options{SkipStatusUpdates: true} // written with compare-and-swap
	})
	must.Watch(flows.Informer(), cache.ResourceEventHandlerFuncs{
		AddFunc: impl.Enqueue,
		// Each committed group of deletions is an update.
		UpdateFunc: func(_, after any) { impl.EnqueueAfter(after, minInterval) },
	})
	return impl
}

// registerGauges registers gauges of the breakers, which read the status.
func registerGauges(meter metric.Meter, lister listers.PodDeletionFlowControlLister) {
	each := func(name string, value func(*v1alpha1.PodDeletionFlowControl) int64) {
		metrics.Observe(meter, name, func(observe func(int64, ...string)) {
			all, err := lister.List(labels.Everything())
			if err != nil {
				return // a cache returns no error
			}
			for _, f := range all {
				observe(value(f), f.Name)
			}
		})
	}
	each("breakwater_deletionflow_breaker_open", func(f *v1alpha1.PodDeletionFlowControl) int64 { return metrics.Bool(isOpen(f)) })
	each("breakwater_deletionflow_window_deletions", func(f *v1alpha1.PodDeletionFlowControl) int64 { return f.Status.Deleted })
}
