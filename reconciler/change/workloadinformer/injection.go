package workloadinformer

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	"knative.dev/pkg/injection/clients/dynamicclient"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/apidiscovery"
	"github.com/breakwater-dev/breakwater/internal/eventrecorder"
	"github.com/breakwater-dev/breakwater/internal/kindwatch"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// init registers the Watch like the informers of Knative: each process has one, which
// sharedmain starts and syncs, and which code takes from the context.
func init() {
	injection.Default.RegisterInformer(inject)
	injection.Fake.RegisterInformer(inject)
}

// key is the key of the Watch in a context.
type key struct{}

func inject(ctx context.Context) (context.Context, controller.Informer) {
	w := newWatch(ctx)
	return context.WithValue(ctx, key{}, w), w
}

// Get returns the process's Watch.
func Get(ctx context.Context) *Watch {
	w, ok := ctx.Value(key{}).(*Watch)
	if !ok {
		logging.FromContext(ctx).Panic("the context has no watch of workloads")
	}
	return w
}

func newWatch(ctx context.Context) *Watch {
	w := &Watch{
		client: dynamicclient.Get(ctx),
		served: func(k workload.Kind) (bool, error) {
			kind, err := apidiscovery.KindOf(kubeclient.Get(ctx).Discovery(), k.GroupVersionResource())
			return kind == k.Kind, err
		},
		resync:            controller.GetResyncPeriod(ctx),
		discoveryInterval: kindwatch.DiscoveryInterval,
		clock:             clock.RealClock{},
		logger:            logging.FromContext(ctx),
		event:             eventWriter(ctx),
		rejected:          metrics.NewCounter(metrics.Meter(), "breakwater_workload_config_errors_total"),
		changed:           make(chan struct{}, 1),
		wanted:            workload.BuiltIn(),
		missing:           map[schema.GroupKind]bool{},
	}
	w.kinds.New, w.kinds.Logger = w.newInformer, w.logger
	metrics.Observe(metrics.Meter(), "breakwater_workload_kind_watched", w.observeWatched)
	return w
}

// eventWriter returns a function that records Events on config-workloads.
func eventWriter(ctx context.Context) func(reason, message string) {
	recorder := eventrecorder.New(ctx, kubeclient.Get(ctx), eventrecorder.Breakwater)
	return func(reason, message string) {
		recorder.Event(&corev1.ObjectReference{
			APIVersion: "v1", Kind: "ConfigMap", Namespace: v1alpha1.SystemNamespace, Name: workload.ConfigMapName,
		}, corev1.EventTypeWarning, reason, message)
	}
}
