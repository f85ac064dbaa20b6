//go:build controlplane

package change

import (
	"context"
	"errors"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	admissionlisters "k8s.io/client-go/listers/admissionregistration/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/reconciler"

	admission "github.com/breakwater-dev/breakwater/admission/change"
	"github.com/breakwater-dev/breakwater/admission/change/workloadkinds"
	"github.com/breakwater-dev/breakwater/admission/server/webhookconfig"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/e2e/clients"
)

// This test needs a real API server: a fake one does not check the resourceVersion of a patch.
func TestAStaleWriteOfACABundleConflicts(t *testing.T) {
	c := clients.Require(t)
	configs := c.Kube.AdmissionregistrationV1().MutatingWebhookConfigurations()
	static, err := configs.Get(t.Context(), admission.Configuration, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, generated := range map[string]bool{"a configuration of the manifests": false, "a generated configuration": true} {
		t.Run(name, func(t *testing.T) {
			object := &admissionregistrationv1.MutatingWebhookConfiguration{
				ObjectMeta: metav1.ObjectMeta{GenerateName: "stale-"},
				Webhooks: []admissionregistrationv1.MutatingWebhook{{
					Name: "stale.breakwater.dev", SideEffects: new(admissionregistrationv1.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
					ClientConfig: admissionregistrationv1.WebhookClientConfig{
						Service: &admissionregistrationv1.ServiceReference{Namespace: v1alpha1.SystemNamespace, Name: "stale"},
					},
				}},
			}
			cached, err := configs.Create(t.Context(), object, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := configs.Delete(context.Background(), cached.Name, metav1.DeleteOptions{}); err != nil {
					t.Error(err)
				}
			})
			seen := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			if err := errors.Join(seen.Add(static), seen.Add(cached)); err != nil {
				t.Fatal(err)
			}
			r := &webhookconfig.Reconciler{
				Service: "stale", Secret: admission.SecretName, Static: admission.Configuration, Clock: clock.RealClock{},
				Kinds:  func() workloadkinds.State { return workloadkinds.State{Kinds: workload.BuiltIn()} },
				Client: c.Kube.AdmissionregistrationV1(), Mutating: admissionlisters.NewMutatingWebhookConfigurationLister(seen),
				LiveSecrets: c.Kube.CoreV1().Secrets(v1alpha1.SystemNamespace), Namespaces: c.Kube.CoreV1().Namespaces(),
			}
			if generated {
				r.Generated = cached.Name
			}
			if err := r.Promote(reconciler.UniversalBucket(), nil); err != nil {
				t.Fatal(err)
			}
			newer := []byte(`{"metadata":{"labels":{"newer":"true"}}}`)
			current, err := configs.Patch(t.Context(), cached.Name, types.MergePatchType, newer, metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			key := webhookconfig.MutatingKey(cached.Name).String()
			if err := r.Reconcile(t.Context(), key); !apierrs.IsConflict(err) {
				t.Errorf("a stale write: got %v, want a conflict", err)
			}
			if err := seen.Update(current); err != nil {
				t.Fatal(err)
			}
			err = r.Reconcile(t.Context(), key)
			if again, _ := controller.IsRequeueKey(err); !again {
				t.Errorf("a write of the current version: %v", err)
			}
		})
	}
}
