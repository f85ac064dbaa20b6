package webhookconfig

import (
	"context"
	"encoding/json"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"knative.dev/pkg/logging"

	"github.com/breakwater-dev/breakwater/admission/change/workloadkinds"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/webhookpath"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// KindsAnnotation holds the list of kinds that a generated configuration was built
// from. A replica that starts while the ConfigMap is invalid uses this list.
const KindsAnnotation = "app.ops.cloud.alipay.com/kinds"

// fieldManager owns all fields of the generated configurations.
const fieldManager = "webhook"

// generate applies the configuration for the kinds of config-workloads. It reverts
// manual changes of the generated configuration, and copies manual changes of the
// static configuration, from which the webhooks are derived. version is the
// resourceVersion of the generated configuration; empty if it does not exist.
func (r *Reconciler) generate(ctx context.Context, kind, version string, access webhookpath.Access) error {
	state := r.Kinds()
	if state.Err != nil && kind == validating {
		r.reportConfigError(ctx, state)
	}
	config, webhooks, err := r.generated(kind, state, access)
	if apierrs.IsNotFound(err) {
		return nil // the creation of the static configuration enqueues the key
	} else if err != nil {
		return err
	}
	// Without kinds the configuration is not created, and an existing one is emptied.
	if len(webhooks) == 0 && version == "" {
		return nil
	}
	meta := metaOf(config)
	meta.ResourceVersion = version
	meta.Annotations = map[string]string{KindsAnnotation: state.Data}
	installed, _, err := r.installed(kind, r.Generated, webhooks)
	if err != nil {
		return err
	}
	if installed != "" {
		meta.Annotations[InstalledAnnotation] = installed
	}
	if meta.OwnerReferences, err = r.owner(ctx); err != nil {
		return err
	}
	raw, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("encode %s: %w", meta.Name, err)
	}
	options := metav1.PatchOptions{FieldManager: fieldManager, Force: new(true)}
	if kind == mutating {
		_, err = r.Client.MutatingWebhookConfigurations().Patch(ctx, meta.Name, types.ApplyPatchType, raw, options)
	} else {
		_, err = r.Client.ValidatingWebhookConfigurations().Patch(ctx, meta.Name, types.ApplyPatchType, raw, options)
	}
	if err != nil {
		return fmt.Errorf("apply %s/%s: %w", kind, meta.Name, err)
	}
	return nil
}

// generated returns the configuration and the names of its webhooks.
func (r *Reconciler) generated(kind string, state workloadkinds.State, access webhookpath.Access) (config any, names []string, err error) {
	meta := metav1.ObjectMeta{Name: r.Generated, Labels: map[string]string{
		"app.kubernetes.io/part-of": "breakwater", "app.kubernetes.io/component": "webhook",
		"admissions.enforcer/disabled": "true", // see config/protection/431-webhook-deletionflow.yaml
	}}
	version := admissionregistrationv1.SchemeGroupVersion.String()
	if kind == mutating {
		static, err := r.Mutating.Get(r.Static)
		if err != nil {
			return nil, nil, err
		}
		webhooks, err := workloadkinds.MutatingWebhooks(static.Webhooks, state.Kinds, access)
		for i := range webhooks {
			names = append(names, webhooks[i].Name)
		}
		return &admissionregistrationv1.MutatingWebhookConfiguration{
			TypeMeta:   metav1.TypeMeta{APIVersion: version, Kind: "MutatingWebhookConfiguration"},
			ObjectMeta: meta, Webhooks: webhooks,
		}, names, err
	}
	static, err := r.Validating.Get(r.Static)
	if err != nil {
		return nil, nil, err
	}
	webhooks, err := workloadkinds.ValidatingWebhooks(static.Webhooks, state.Kinds, access)
	for i := range webhooks {
		names = append(names, webhooks[i].Name)
	}
	return &admissionregistrationv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: version, Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: meta, Webhooks: webhooks,
	}, names, err
}

func metaOf(config any) *metav1.ObjectMeta {
	if c, ok := config.(*admissionregistrationv1.MutatingWebhookConfiguration); ok {
		return &c.ObjectMeta
	}
	return &config.(*admissionregistrationv1.ValidatingWebhookConfiguration).ObjectMeta
}

// owner returns Breakwater's namespace as the owner of the generated configuration.
// No manifest contains the configuration, so uninstalling would leave it behind.
func (r *Reconciler) owner(ctx context.Context) ([]metav1.OwnerReference, error) {
	ns, err := r.Namespaces.Get(ctx, v1alpha1.SystemNamespace, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get namespace %s: %w", v1alpha1.SystemNamespace, err)
	}
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: "Namespace", Name: ns.Name, UID: ns.UID}}, nil
}

// reportConfigError logs that the ConfigMap is invalid and records an Event on it.
func (r *Reconciler) reportConfigError(ctx context.Context, state workloadkinds.State) {
	used := "its last valid state is used"
	if state.Data == "" {
		used = "only the built-in kinds are used"
	}
	logging.FromContext(ctx).Errorw("ConfigMap "+workload.ConfigMapName+" is invalid, "+used, "error", state.Err)
	r.Recorder.Event(&corev1.ObjectReference{
		APIVersion: "v1", Kind: "ConfigMap", Namespace: v1alpha1.SystemNamespace, Name: workload.ConfigMapName, UID: state.UID,
	}, corev1.EventTypeWarning, v1alpha1.ReasonInvalid, "the ConfigMap is invalid, "+used+": "+state.Err.Error())
}
