// Package change lists the controllers of changes.
package change

import (
	"context"

	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/delivery"
	"github.com/breakwater-dev/breakwater/events/delivery/broker"
	"github.com/breakwater-dev/breakwater/internal/eventsigning"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/reconciler/change/callqueue"
	"github.com/breakwater-dev/breakwater/reconciler/change/changepod"
	"github.com/breakwater-dev/breakwater/reconciler/change/changeworkload"
	"github.com/breakwater-dev/breakwater/reconciler/change/opsconfiginfo"
	"github.com/breakwater-dev/breakwater/reconciler/change/pod"
	"github.com/breakwater-dev/breakwater/reconciler/change/replay"
	"github.com/breakwater-dev/breakwater/reconciler/change/rollback"
	"github.com/breakwater-dev/breakwater/reconciler/change/savedtemplates"
	"github.com/breakwater-dev/breakwater/reconciler/change/signingkeys"
	"github.com/breakwater-dev/breakwater/reconciler/change/workload"
)

// Component is the name of the process in logs, metrics, Leases and config-logging.
const Component = "controller"

// Controllers returns the constructors of the controllers. Those that send events share
// the sender out, which has one queue and one set of connections, and signs. Those that call the
// server share a queue of calls. Those that read settings have a settings.Store each, which
// costs one handler on a shared informer.
func Controllers(out *broker.SharedSender) []injection.ControllerConstructor {
	out.SignWith(func(ctx context.Context) delivery.Signer {
		return eventsigning.NewEventStore(kubeclient.Get(ctx).CoreV1(), clock.RealClock{})
	})
	calls := callqueue.New(clock.RealClock{})
	calls.Observe(metrics.Meter())
	return []injection.ControllerConstructor{
		workload.NewController,
		opsconfiginfo.NewController,
		savedtemplates.NewController,
		signingkeys.NewController,
		out.With(pod.NewController),
		out.WithConfirming(func(ctx context.Context, cmw configmap.Watcher, sender events.ConfirmingSender) *controller.Impl {
			return changeworkload.NewController(ctx, cmw, sender, calls)
		}),
		out.With(func(ctx context.Context, cmw configmap.Watcher, sender events.Sender) *controller.Impl {
			return changepod.NewController(ctx, cmw, sender, calls)
		}),
		rollback.NewController,
		out.WithDelivering(func(ctx context.Context, cmw configmap.Watcher, sender *delivery.Sender) *controller.Impl {
			return replay.NewController(ctx, cmw, sender)
		}),
	}
}
