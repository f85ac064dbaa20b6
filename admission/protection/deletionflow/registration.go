package deletionflow

import (
	"context"
	_ "embed" // of registration.yaml
	"encoding/json"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	admissionlisters "k8s.io/client-go/listers/admissionregistration/v1"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"
	"sigs.k8s.io/yaml"

	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/webhookpath"
)

// Configuration is the ValidatingWebhookConfiguration that the webhooks are added to
// and removed from. RBAC names it too.
const Configuration = "breakwater-deletionflow"

//go:embed registration.yaml
var webhooksYAML []byte

// Webhooks returns the webhooks that are registered while a flow control exists.
func Webhooks(access webhookpath.Access) ([]admissionregistrationv1.ValidatingWebhook, error) {
	var all []admissionregistrationv1.ValidatingWebhook
	if err := yaml.UnmarshalStrict(webhooksYAML, &all); err != nil {
		return nil, fmt.Errorf("parse registration.yaml: %w", err)
	}
	for i := range all {
		access.Set(&all[i].ClientConfig, all[i].Name)
	}
	return all, nil
}

// Registration reconciles the webhooks of Configuration and reverts other changes.
type Registration struct {
	reconciler.LeaderAwareFuncs

	Client  admissionclient.ValidatingWebhookConfigurationInterface
	Configs admissionlisters.ValidatingWebhookConfigurationLister
	// Secrets reads from the API server, because a cache may be older than that of Configs.
	Secrets      corev1client.SecretInterface
	FlowControls listers.PodDeletionFlowControlLister
	// Secret is the name of the Secret with the certificate.
	Secret string
	// Clock determines the period of the webhook paths (internal/webhookpath).
	Clock clock.PassiveClock
}

var (
	_ controller.Reconciler  = (*Registration)(nil)
	_ reconciler.LeaderAware = (*Registration)(nil)
)

// Key is the only key of Registration.
var Key = types.NamespacedName{Name: Configuration}

// Reconcile implements controller.Reconciler.
func (r *Registration) Reconcile(ctx context.Context, key string) error {
	if !r.IsLeaderFor(Key) {
		return controller.NewSkipKey(key)
	}
	// The configuration is read before the Secret, and the write fails if the configuration
	// has changed since: a former leader that was paused in between must not replace the CA
	// bundle of a newer certificate.
	config, err := r.Configs.Get(Configuration)
	if apierrs.IsNotFound(err) {
		return nil // its creation enqueues the key
	} else if err != nil {
		return fmt.Errorf("get %s: %w", Configuration, err)
	}
	now := r.Clock.Now()
	want, known, err := r.wantedWebhooks(ctx, now)
	if err != nil || !known || len(want)+len(config.Webhooks) == 0 {
		return err
	}
	if !equality.Semantic.DeepEqual(want, config.Webhooks) {
		if err := r.write(ctx, config, want); err != nil {
			return err
		}
	}
	return controller.NewRequeueAfter(webhookpath.UntilNextPeriod(now))
}

func (r *Registration) write(ctx context.Context, config *admissionregistrationv1.ValidatingWebhookConfiguration, want []admissionregistrationv1.ValidatingWebhook) error {
	patch, err := json.Marshal(map[string]any{
		// Optimistic lock: a merge patch replaces the whole list.
		"metadata": map[string]any{"resourceVersion": config.ResourceVersion}, "webhooks": want,
	})
	if err != nil {
		return fmt.Errorf("encode %s: %w", Configuration, err)
	}
	if _, err := r.Client.Patch(ctx, Configuration, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("write %s: %w", Configuration, err)
	}
	logging.FromContext(ctx).Infow("wrote the webhooks of deletion flow control", "webhooks", len(want))
	return nil
}

// wantedWebhooks returns the webhooks that should be registered: none without a flow
// control. Without a certificate nothing changes (known is false): the API server
// could not call new webhooks and would deny every request.
func (r *Registration) wantedWebhooks(ctx context.Context, now time.Time) (all []admissionregistrationv1.ValidatingWebhook, known bool, err error) {
	flows, err := r.FlowControls.List(labels.Everything())
	if err != nil || len(flows) == 0 {
		return nil, err == nil, err
	}
	secret, err := r.Secrets.Get(ctx, r.Secret, metav1.GetOptions{})
	if apierrs.IsNotFound(err) {
		return nil, false, nil
	} else if err != nil {
		return nil, false, fmt.Errorf("get certificate: %w", err)
	}
	access, ok := webhookpath.AccessOf(secret, now)
	if !ok {
		return nil, false, nil
	}
	all, err = Webhooks(access)
	return all, err == nil, err
}
