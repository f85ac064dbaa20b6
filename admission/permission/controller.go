package permission

import (
	"context"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"
	kubeclient "knative.dev/pkg/client/injection/kube/client"
	mutatinginformer "knative.dev/pkg/client/injection/kube/informers/admissionregistration/v1/mutatingwebhookconfiguration"
	validatinginformer "knative.dev/pkg/client/injection/kube/informers/admissionregistration/v1/validatingwebhookconfiguration"
	limitrangeinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/limitrange"
	namespaceinformer "knative.dev/pkg/client/injection/kube/informers/core/v1/namespace"
	"knative.dev/pkg/configmap"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/injection"
	secretinformer "knative.dev/pkg/injection/clients/namespacedkube/informers/core/v1/secret"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/server"
	"github.com/breakwater-dev/breakwater/admission/server/webhookconfig"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/optionalconfig"
	"github.com/breakwater-dev/breakwater/internal/ownerchain"
	"github.com/breakwater-dev/breakwater/internal/servingcert"
	"github.com/breakwater-dev/breakwater/internal/wiring"
	"github.com/breakwater-dev/breakwater/permission/centreclient"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/requiredsets"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

// The names of objects in the manifests, in SystemNamespace.
const (
	// ServiceName is the Service of the webhooks.
	ServiceName = "permission-webhook"
	// SecretName is the Secret with the serving certificate.
	SecretName = "permission-webhook-certs"
	// Configuration is the name of both webhook configurations. RBAC names it too.
	Configuration = "breakwater-permission"
	// imageEnv is the environment variable with the image of the init-action-client.
	imageEnv = "INIT_ACTION_CLIENT_IMAGE"
	// tokenFile is where the manifest mounts the token for the permission centre.
	tokenFile = "/var/run/secrets/stke.io/permission-centre/token"
)

// keys are the webhook configurations whose CA bundle the reconciler maintains.
var keys = []types.NamespacedName{webhookconfig.MutatingKey(Configuration), webhookconfig.ValidatingKey(Configuration)}

// NewController returns the constructor for sharedmain. The context must have
// webhook.Options. It panics on permanent errors.
func NewController(process *server.Process) injection.ControllerConstructor {
	return func(ctx context.Context, cmw configmap.Watcher) *controller.Impl {
		must := wiring.NewMust(ctx, "set up the webhooks of permissions")
		handlers, err := newHandlers(ctx, cmw)
		must(err)
		mux := admission.NewMux(metrics.Meter(), func(webhook string) (admission.Handler, bool) {
			handler, ok := handlers[webhook]
			return handler, ok
		})
		impl, err := server.NewController(ctx, process, newWebhookConfigReconciler(ctx), mux)
		must(err)
		must(follow(ctx, impl))
		return impl
	}
}

func newHandlers(ctx context.Context, cmw configmap.Watcher) (map[string]admission.Handler, error) {
	image := os.Getenv(imageEnv)
	if image == "" {
		return nil, fmt.Errorf("%s: must name the image of the init container", imageEnv)
	}
	objects, err := metadata.NewForConfig(injection.GetConfig(ctx))
	if err != nil {
		return nil, fmt.Errorf("create a metadata client: %w", err)
	}
	store := settings.NewStore()
	store.Follow(ctx, cmw)
	trust := &servingcert.Bundle{Missing: podmeta.ErrNoBundle}
	optionalconfig.Watch(cmw, podmeta.BundleName, func(cm *corev1.ConfigMap) { trust.Update(cm.Data) })
	checker := NewSetChecker(centreclient.New(centreclient.Options{URL: func() string { return store.Get().CentreURL }, TokenFile: tokenFile, Trust: trust}))
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kubeclient.Get(ctx).Discovery()))
	find := requiredsets.Resolver{Owners: ownerchain.New(objects, mapper), Namespaces: namespaceinformer.Get(ctx).Lister(), Client: kubeclient.Get(ctx).CoreV1().Namespaces()}
	return map[string]admission.Handler{
		PodWebhook: Pods{
			RequiredSets: find,
			SetChecker:   checker, Settings: store.Get, Image: image, LimitRanges: limitrangeinformer.Get(ctx).Lister(), Bundle: trust.Get,
		},
		WorkloadWebhook: Workloads{SetChecker: checker},
	}, nil
}

func newWebhookConfigReconciler(ctx context.Context) *webhookconfig.Reconciler {
	configs := webhookconfig.New(ctx, Configuration, keys...)
	configs.Mutating = mutatinginformer.Get(ctx).Lister()
	return configs
}

func follow(ctx context.Context, impl *controller.Impl) error {
	return errors.Join(
		webhookconfig.EnqueueOnChange(impl, secretinformer.Get(ctx).Informer(),
			controller.FilterWithNameAndNamespace(v1alpha1.SystemNamespace, SecretName), keys...),
		webhookconfig.EnqueueOnChange(impl, mutatinginformer.Get(ctx).Informer(), controller.FilterWithName(Configuration), keys...),
		webhookconfig.EnqueueOnChange(impl, validatinginformer.Get(ctx).Informer(), controller.FilterWithName(Configuration), keys...),
	)
}
