package deletionflow

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"

	policyclient "github.com/breakwater-dev/breakwater/client/injection/client"
	flowinformer "github.com/breakwater-dev/breakwater/client/injection/informers/policy/v1alpha1/poddeletionflowcontrol"
	reconcilerflow "github.com/breakwater-dev/breakwater/client/injection/reconciler/policy/v1alpha1/poddeletionflowcontrol"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/deletionwindow"
)

const (
	// agentName is the source of Kubernetes Events.
	agentName = "breakwater"
	meterName = "github.com/breakwater-dev/breakwater/reconciler/protection/deletionflow"
)

// NewController returns the controller of PodDeletionFlowControls.
func NewController(ctx context.Context, _ configmap.Watcher, sender events.Sender) *controller.Impl {
	must := func(err error) {
		if err != nil {
			logging.FromContext(ctx).Panicw("wire the controller of deletion flow control", "error", err)
		}
	}
	flows := flowinformer.Get(ctx)
	must(registerGauges(otel.Meter(meterName), flows.Lister()))
	r := &Reconciler{client: policyclient.Get(ctx).PolicyV1alpha1(), clock: clock.RealClock{}, skew: deletionwindow.DefaultSkew, sender: sender}
	impl := reconcilerflow.NewImpl(ctx, r, func(*controller.Impl) controller.Options {
		return controller.Options{AgentName: agentName, SkipStatusUpdates: true} // written with compare-and-swap
	})
	_, err := flows.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: impl.Enqueue,
		// Each committed group of deletions is an update.
		UpdateFunc: func(_, after any) { impl.EnqueueAfter(after, minInterval) },
	})
	must(err)
	return impl
}

// registerGauges registers gauges of the breakers, which read the status.
func registerGauges(meter metric.Meter, lister listers.PodDeletionFlowControlLister) error {
	open, err := meter.Int64ObservableGauge("breakwater.deletionflow.open",
		metric.WithDescription("1 while a limit is reached and deletions are denied, by flow control"))
	if err != nil {
		return fmt.Errorf("create gauge: %w", err)
	}
	deleted, err := meter.Int64ObservableGauge("breakwater.deletionflow.deleted",
		metric.WithDescription("Deletions in the longest window, by flow control"))
	if err != nil {
		return fmt.Errorf("create gauge: %w", err)
	}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		all, err := lister.List(labels.Everything())
		for _, f := range all {
			name := metric.WithAttributes(attribute.String("name", f.Name))
			o.ObserveInt64(deleted, f.Status.Deleted, name)
			if isOpen(f) {
				o.ObserveInt64(open, 1, name)
			} else {
				o.ObserveInt64(open, 0, name)
			}
		}
		return err
	}, open, deleted)
	if err != nil {
		return fmt.Errorf("register gauges: %w", err)
	}
	return nil
}
