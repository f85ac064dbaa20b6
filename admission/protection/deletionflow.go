package protection

import (
	"context"
	"errors"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	admissionlisters "k8s.io/client-go/listers/admissionregistration/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	validatinginformer "knative.dev/pkg/client/injection/kube/informers/admissionregistration/v1/validatingwebhookconfiguration"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	secretinformer "knative.dev/pkg/injection/clients/namespacedkube/informers/core/v1/secret"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/admission/protection/deletionflow"
	"github.com/breakwater-dev/breakwater/admission/server/webhookconfig"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	policyclient "github.com/breakwater-dev/breakwater/client/injection/client"
	flowinformer "github.com/breakwater-dev/breakwater/client/injection/informers/policy/v1alpha1/poddeletionflowcontrol"
	"github.com/breakwater-dev/breakwater/internal/checkedclock"
	"github.com/breakwater-dev/breakwater/internal/deletionwindow"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/wiring"
)

const (
	registrationQueue = "deletionflow"
	// checkEvery is the interval between two checks of the clock.
	checkEvery = 5 * time.Second
)

func newDeletionFlowGuard(ctx context.Context, recorder record.EventRecorder, objects metadata.Interface, pdbs deletionflow.PodDisruptionBudgets) (deletionflow.Guard, error) {
	kube, policies := kubeclient.Get(ctx), policyclient.Get(ctx).PolicyV1alpha1()
	now, err := newClock(ctx)
	if err != nil {
		return deletionflow.Guard{}, err
	}
	lister := flowinformer.Get(ctx).Lister()
	return deletionflow.Guard{
		FlowControls: lister, Pods: kube.CoreV1(), Objects: objects, Namespaces: namespaceinformer.Get(ctx).Lister(), PDBs: pdbs,
		Commit: deletionflow.NewCommitter(lister, policies, now, deletionwindow.DefaultSkew, countGroups("PodDeletionFlowControl")),
		Clock:  now, Recorder: recorder,
	}, nil
}

// configurationExists reports whether the configuration of flow control exists, or cannot
// be read: deleting it disables flow control in every namespace. It does not consider
// the webhooks in it, which the registration restores.
func configurationExists(configurations admissionlisters.ValidatingWebhookConfigurationLister) func() bool {
	return func() bool {
		_, err := configurations.Get(deletionflow.Configuration)
		return !apierrs.IsNotFound(err)
	}
}

// newClock returns a clock that is compared with the API server's until ctx ends.
func newClock(ctx context.Context) (*checkedclock.Clock, error) {
	c, err := checkedclock.New(injection.GetConfig(ctx), deletionwindow.DefaultSkew)
	if err != nil {
		return nil, err
	}
	metrics.Observe(metrics.Meter(), "breakwater_deletionflow_clock_skewed", func(observe func(int64, ...string)) {
		observe(metrics.Bool(c.SkewError() != nil))
	})
	go wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		if err := c.Check(ctx); err != nil {
			logging.FromContext(ctx).Warnw("could not compare the clock with the API server's", "error", err)
		}
	}, checkEvery, 0, true)
	return c, nil
}

// NewDeletionFlowRegistration returns the controller that registers the webhooks of
// deletion flow control while a flow control exists.
func NewDeletionFlowRegistration(ctx context.Context, _ configmap.Watcher) *controller.Impl {
	registration := &deletionflow.Registration{
		LeaderAwareFuncs: reconciler.LeaderAwareFuncs{PromoteFunc: wiring.PromoteKeys(deletionflow.Key)},

		Client:  kubeclient.Get(ctx).AdmissionregistrationV1().ValidatingWebhookConfigurations(),
		Configs: validatinginformer.Get(ctx).Lister(), Secrets: kubeclient.Get(ctx).CoreV1().Secrets(v1alpha1.SystemNamespace),
		FlowControls: flowinformer.Get(ctx).Lister(), Secret: SecretName, Clock: clock.RealClock{},
	}
	impl := controller.NewContext(ctx, registration, controller.ControllerOptions{
		WorkQueueName: registrationQueue, Logger: logging.FromContext(ctx).Named(registrationQueue), RateLimiter: wiring.RetryWithin(webhookconfig.RetryWithin),
	})
	_, watched := flowinformer.Get(ctx).Informer().AddEventHandler(onFlowControls(func() { impl.EnqueueKey(deletionflow.Key) }))
	if err := errors.Join(
		watched,
		webhookconfig.EnqueueOnChange(impl, secretinformer.Get(ctx).Informer(),
			controller.FilterWithNameAndNamespace(v1alpha1.SystemNamespace, SecretName), deletionflow.Key),
		webhookconfig.EnqueueOnChange(impl, validatinginformer.Get(ctx).Informer(), controller.FilterWithName(deletionflow.Configuration), deletionflow.Key),
	); err != nil {
		logging.FromContext(ctx).Panicw("watch for the registration of deletion flow control", "error", err)
	}
	return impl
}

// onFlowControls calls changed when a flow control is created or deleted. Each counted deletion updates
// one, and does not change which webhooks are registered.
func onFlowControls(changed func()) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{AddFunc: func(any) { changed() }, DeleteFunc: func(any) { changed() }}
}
