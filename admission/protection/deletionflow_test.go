package protection

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionlisters "k8s.io/client-go/listers/admissionregistration/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/admission/protection/deletionflow"
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
