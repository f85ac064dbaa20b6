package protection

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionlisters "k8s.io/client-go/listers/admissionregistration/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/admission/protection/cascade"
	"github.com/breakwater-dev/breakwater/admission/protection/deletionflow"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// The webhook of budgets calls flow control without a webhook of flow control.
func TestDeletingItsConfigurationDisablesFlowControl(t *testing.T) {
	known := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	exists := configurationExists(admissionlisters.NewValidatingWebhookConfigurationLister(known))
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: deletionflow.Configuration}}
	if err := known.Add(config); err != nil {
		t.Fatal(err)
	}
	if !exists() {
		t.Error("disabled while the configuration exists")
	}
	if err := known.Delete(config); err != nil {
		t.Fatal(err)
	}
	if exists() {
		t.Error("enabled after the configuration was deleted")
	}
}

func TestCountedDeletionsDoNotReconcileTheRegistration(t *testing.T) {
	calls := 0
	handler := onFlowControls(func() { calls++ })
	f := &v1alpha1.PodDeletionFlowControl{}
	for range 100 {
		handler.OnUpdate(f, f)
	}
	if calls != 0 {
		t.Errorf("%d calls for 100 updates", calls)
	}
	handler.OnAdd(f, true)
	handler.OnDelete(f)
	if calls != 2 {
		t.Errorf("%d calls, want one for the creation and one for the deletion", calls)
	}
}

// Otherwise flow control has to count the deletions of protected namespaces.
func TestWhenTheWebhookOfCascadingDeletionDenies(t *testing.T) {
	config := builder.Manifests[admissionregistrationv1.ValidatingWebhookConfiguration](t, manifests+"430-webhook-validating.yaml")[0]
	ignoring := config.DeepCopy()
	for i := range ignoring.Webhooks {
		ignoring.Webhooks[i].FailurePolicy = new(admissionregistrationv1.Ignore)
	}
	// changed returns the configuration with another webhook of cascading deletion.
	changed := func(change func(*admissionregistrationv1.ValidatingWebhook)) *admissionregistrationv1.ValidatingWebhookConfiguration {
		c := config.DeepCopy()
		for i := range c.Webhooks {
			if c.Webhooks[i].Name == cascade.Webhook {
				change(&c.Webhooks[i])
			}
		}
		return c
	}
	only := &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	for name, tc := range map[string]struct {
		config *admissionregistrationv1.ValidatingWebhookConfiguration
		want   bool
	}{
		"as in the manifest":     {&config, true},
		"no rule for namespaces": {changed(func(w *admissionregistrationv1.ValidatingWebhook) { w.Rules = w.Rules[1:] }), false},
		"some namespaces":        {changed(func(w *admissionregistrationv1.ValidatingWebhook) { w.NamespaceSelector = only }), false},
		"some objects":           {changed(func(w *admissionregistrationv1.ValidatingWebhook) { w.ObjectSelector = only }), false},
		"another condition": {changed(func(w *admissionregistrationv1.ValidatingWebhook) {
			w.MatchConditions = append(w.MatchConditions, admissionregistrationv1.MatchCondition{Name: "not-break-glass"})
		}), false},
		"its failures are ignored":     {ignoring, false},
		"without the webhook":          {&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: config.ObjectMeta}, false},
		"the configuration is deleted": {nil, false},
	} {
		known := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		if tc.config != nil {
			if err := known.Add(tc.config); err != nil {
				t.Fatal(err)
			}
		}
		if got := cascadingDenies(admissionlisters.NewValidatingWebhookConfigurationLister(known))(); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
