// Package cabundle writes the CA certificate of the webhook into the caBundle of our
// webhook configurations. All other fields stay as in the manifests, where operators
// tune rules, timeouts and failurePolicy. (Knative's own admission controllers
// overwrite rules, namespaceSelector and reinvocationPolicy.)
//
// The configurations for the kinds of ConfigMap config-workloads are not in the
// manifests; this package generates them completely.
package cabundle

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	admissionlisters "k8s.io/client-go/listers/admissionregistration/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"
	certresources "knative.dev/pkg/webhook/certificates/resources"

	"github.com/breakwater-dev/breakwater/admission/change/workloadkinds"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// Reconciler updates the webhook configurations; only the leader does so.
type Reconciler struct {
	reconciler.LeaderAwareFuncs

	// Service is the name of the webhook's Service in SystemNamespace. Webhooks
	// with another Service are ignored.
	Service string
	// Secret is the name of the Secret with the certificate in SystemNamespace.
	Secret string

	// Static is the name of the configurations in the manifests, Generated the name
	// of the configurations for the kinds of config-workloads.
	Static, Generated string
	// Kinds returns the current workload kinds.
	Kinds func() workloadkinds.State

	Client     admissionclient.AdmissionregistrationV1Interface
	Mutating   admissionlisters.MutatingWebhookConfigurationLister
	Validating admissionlisters.ValidatingWebhookConfigurationLister
	Secrets    corelisters.SecretLister
	Namespaces corev1client.NamespaceInterface
	// Recorder records Events about an invalid config-workloads.
	Recorder record.EventRecorder
}

var (
	_ controller.Reconciler  = (*Reconciler)(nil)
	_ reconciler.LeaderAware = (*Reconciler)(nil)
)

// Reconcile updates one configuration. key is a MutatingKey or a ValidatingKey.
func (r *Reconciler) Reconcile(ctx context.Context, key string) error {
	kind, name, ok := parseKey(key)
	if !ok {
		return controller.NewPermanentError(fmt.Errorf("invalid key %q of a webhook configuration", key))
	}
	if !r.IsLeaderFor(types.NamespacedName{Namespace: kind, Name: name}) {
		return controller.NewSkipKey(key)
	}
	bundle, err := r.bundle()
	if err != nil || bundle == nil {
		return err
	}
	if name == r.Generated {
		return r.generate(ctx, kind, bundle)
	}
	stale, err := r.stale(kind, name, bundle)
	if apierrs.IsNotFound(err) {
		return nil // its creation enqueues the key
	} else if err != nil || len(stale) == 0 {
		return err
	}
	patch, err := bundlePatch(stale, bundle)
	if err != nil {
		return err
	}
	if err := r.write(ctx, kind, name, patch); err != nil {
		return fmt.Errorf("write caBundle of %s: %w", key, err)
	}
	logging.FromContext(ctx).Infow("wrote caBundle", "webhooks", stale)
	return nil
}

// bundle returns the CA certificate, or nil if it does not exist yet: the reconciler
// of the certificates creates it, which enqueues the keys.
func (r *Reconciler) bundle() ([]byte, error) {
	secret, err := r.Secrets.Secrets(v1alpha1.SystemNamespace).Get(r.Secret)
	if apierrs.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("get certificate Secret: %w", err)
	}
	return secret.Data[certresources.CACert], nil
}

// stale returns the names of our webhooks with another caBundle.
func (r *Reconciler) stale(kind, name string, bundle []byte) ([]string, error) {
	var stale []string
	check := func(webhook string, c admissionregistrationv1.WebhookClientConfig) {
		if s := c.Service; s != nil && s.Namespace == v1alpha1.SystemNamespace && s.Name == r.Service &&
			!bytes.Equal(c.CABundle, bundle) {
			stale = append(stale, webhook)
		}
	}
	if kind == mutating {
		config, err := r.Mutating.Get(name)
		if err != nil {
			return nil, err
		}
		for _, w := range config.Webhooks {
			check(w.Name, w.ClientConfig)
		}
		return stale, nil
	}
	config, err := r.Validating.Get(name)
	if err != nil {
		return nil, err
	}
	for _, w := range config.Webhooks {
		check(w.Name, w.ClientConfig)
	}
	return stale, nil
}

// bundlePatch returns a strategic merge patch. Webhooks are merged by name, so the
// patch contains only changes and overwrites no concurrent edit. For a webhook that
// was removed meanwhile, the API server rejects the patch as invalid.
func bundlePatch(webhooks []string, bundle []byte) ([]byte, error) {
	type clientConfig struct {
		CABundle []byte `json:"caBundle"`
	}
	type webhook struct {
		Name         string       `json:"name"`
		ClientConfig clientConfig `json:"clientConfig"`
	}
	var patch struct {
		Webhooks []webhook `json:"webhooks"`
	}
	for _, name := range webhooks {
		patch.Webhooks = append(patch.Webhooks, webhook{name, clientConfig{bundle}})
	}
	return json.Marshal(patch)
}

func (r *Reconciler) write(ctx context.Context, kind, name string, patch []byte) error {
	var err error
	if kind == mutating {
		_, err = r.Client.MutatingWebhookConfigurations().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	} else {
		_, err = r.Client.ValidatingWebhookConfigurations().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	}
	return err
}
