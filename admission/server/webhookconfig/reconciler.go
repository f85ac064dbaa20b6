// Package webhookconfig writes the CA certificate of the webhook and its secret paths
// (internal/webhookpath) into our webhook configurations, and, where it is needed, when each
// webhook was installed. All other fields stay as in the manifests, where operators tune rules, timeouts and failurePolicy. (Knative's own
// admission controllers overwrite rules, namespaceSelector and reinvocationPolicy.)
//
// The configurations for the kinds of ConfigMap config-workloads are not in the
// manifests; this package generates them completely.
package webhookconfig

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	admissionclient "k8s.io/client-go/kubernetes/typed/admissionregistration/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	admissionlisters "k8s.io/client-go/listers/admissionregistration/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/logging"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/admission/change/workloadkinds"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/webhookpath"
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
	// RecordInstallation: InstalledAnnotation is written to the mutating configurations.
	RecordInstallation bool
	// Kinds returns the current workload kinds.
	Kinds func() workloadkinds.State

	Client     admissionclient.AdmissionregistrationV1Interface
	Mutating   admissionlisters.MutatingWebhookConfigurationLister
	Validating admissionlisters.ValidatingWebhookConfigurationLister
	Secrets    corelisters.SecretLister
	// LiveSecrets reads the Secret from the API server, because its cache may be older
	// than those of the configurations.
	LiveSecrets corev1client.SecretInterface
	Namespaces  corev1client.NamespaceInterface
	// Recorder records Events about an invalid config-workloads.
	Recorder record.EventRecorder
	// Clock determines the period of the webhook paths (internal/webhookpath).
	Clock clock.PassiveClock
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
	// The resourceVersion is read before the Secret, and the write fails if it has changed:
	// a former leader that was paused in between must not replace the CA bundle of a newer
	// certificate.
	version, err := r.version(kind, name)
	if err != nil {
		return err
	}
	access, ok, err := r.access(ctx)
	if err != nil || !ok {
		return err
	}
	if name == r.Generated {
		err = r.generate(ctx, kind, version, access)
	} else {
		err = r.update(ctx, kind, name, version, access)
	}
	if err != nil {
		return err
	}
	return controller.NewRequeueAfter(webhookpath.UntilNextPeriod(access.Time))
}

// version returns the resourceVersion of a configuration; empty if it does not exist.
func (r *Reconciler) version(kind, name string) (string, error) {
	var config metav1.Object
	var err error
	if kind == mutating {
		config, err = r.Mutating.Get(name)
	} else {
		config, err = r.Validating.Get(name)
	}
	if apierrs.IsNotFound(err) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("get %s/%s: %w", kind, name, err)
	}
	return config.GetResourceVersion(), nil
}

// update writes the caBundle and the paths of a configuration of the manifests.
func (r *Reconciler) update(ctx context.Context, kind, name, version string, access webhookpath.Access) error {
	owned, stale, err := r.webhooks(kind, name, access)
	if apierrs.IsNotFound(err) {
		return nil // its creation enqueues the key
	} else if err != nil {
		return err
	}
	installed, changed, err := r.installed(kind, name, owned)
	if err != nil || len(stale) == 0 && !changed {
		return err
	}
	patch, err := clientConfigPatch(stale, version, installed, access)
	if err != nil {
		return err
	}
	if err := r.write(ctx, kind, name, patch); err != nil {
		return fmt.Errorf("write caBundle and paths of %s %s: %w", kind, name, err)
	}
	logging.FromContext(ctx).Infow("wrote caBundle and paths", "webhooks", stale)
	return nil
}

// access returns the CA bundle of the webhooks, and the key from which their paths are
// computed. It reports false while there is no certificate: the reconciler of the
// certificate will create it, which enqueues the keys.
func (r *Reconciler) access(ctx context.Context) (webhookpath.Access, bool, error) {
	secret, err := r.LiveSecrets.Get(ctx, r.Secret, metav1.GetOptions{})
	if apierrs.IsNotFound(err) {
		return webhookpath.Access{}, false, nil
	} else if err != nil {
		return webhookpath.Access{}, false, fmt.Errorf("get certificate Secret: %w", err)
	}
	access, ok := webhookpath.AccessOf(secret, r.Clock.Now())
	return access, ok, nil
}

// webhooks returns the names of our webhooks, and of those with another caBundle or path.
func (r *Reconciler) webhooks(kind, name string, access webhookpath.Access) (owned, stale []string, err error) {
	check := func(webhook string, found admissionregistrationv1.WebhookClientConfig) {
		if !r.owns(found) {
			return
		}
		owned = append(owned, webhook)
		if !access.IsSet(found, webhook) {
			stale = append(stale, webhook)
		}
	}
	if kind == mutating {
		config, err := r.Mutating.Get(name)
		if err != nil {
			return nil, nil, err
		}
		for _, w := range config.Webhooks {
			check(w.Name, w.ClientConfig)
		}
		return owned, stale, nil
	}
	config, err := r.Validating.Get(name)
	if err != nil {
		return nil, nil, err
	}
	for _, w := range config.Webhooks {
		check(w.Name, w.ClientConfig)
	}
	return owned, stale, nil
}

// owns reports whether a webhook is one of r.Service.
func (r *Reconciler) owns(c admissionregistrationv1.WebhookClientConfig) bool {
	return c.Service != nil && c.Service.Namespace == v1alpha1.SystemNamespace && c.Service.Name == r.Service
}

// HasPath reports whether a webhook configuration of the cluster has a path of r.Service.
func (r *Reconciler) HasPath(path string) bool {
	has := func(c admissionregistrationv1.WebhookClientConfig) bool {
		return r.owns(c) && ptr.Deref(c.Service.Path, "") == path
	}
	validating, _ := r.Validating.List(labels.Everything())
	for _, config := range validating {
		if slices.ContainsFunc(config.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool { return has(w.ClientConfig) }) {
			return true
		}
	}
	if r.Mutating == nil {
		return false
	}
	mutating, _ := r.Mutating.List(labels.Everything())
	return slices.ContainsFunc(mutating, func(config *admissionregistrationv1.MutatingWebhookConfiguration) bool {
		return slices.ContainsFunc(config.Webhooks, func(w admissionregistrationv1.MutatingWebhook) bool { return has(w.ClientConfig) })
	})
}

// clientConfigPatch returns a strategic merge patch. Webhooks are merged by name, so the
// patch contains only changes. The API server rejects it with a conflict if the
// configuration has another resourceVersion.
func clientConfigPatch(webhooks []string, version, installed string, access webhookpath.Access) ([]byte, error) {
	type service struct {
		Path string `json:"path"`
	}
	type clientConfig struct {
		CABundle []byte  `json:"caBundle"`
		Service  service `json:"service"`
	}
	type webhook struct {
		Name         string       `json:"name"`
		ClientConfig clientConfig `json:"clientConfig"`
	}
	var patch struct {
		Metadata struct {
			ResourceVersion string            `json:"resourceVersion"`
			Annotations     map[string]string `json:"annotations,omitempty"`
		} `json:"metadata"`
		Webhooks []webhook `json:"webhooks,omitempty"`
	}
	patch.Metadata.ResourceVersion = version
	if installed != "" {
		patch.Metadata.Annotations = map[string]string{InstalledAnnotation: installed}
	}
	for _, name := range webhooks {
		patch.Webhooks = append(patch.Webhooks, webhook{name, clientConfig{access.CABundle, service{access.Path(name)}}})
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
