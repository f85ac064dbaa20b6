package cli

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubefake "k8s.io/client-go/kubernetes/fake"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
)

// The label has no effect on namespaces that Breakwater needs to start.
func TestANamespaceThatCannotOptInIsNotOptedIn(t *testing.T) {
	for name, want := range map[string]bool{"shop": true, "knative-serving": false} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled}}}
		c := &clients{kube: kubefake.NewClientset(namespace), breakwater: fake.NewSimpleClientset()}
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"namespace": name, "name": "web"}}}
		in, err := c.input(t.Context(), target{object: object})
		if err != nil || in.OptedIn != want || in.NamespaceLabel != v1alpha1.NamespaceEnabled {
			t.Errorf("%s: opted in: %v, want %v (%v)", name, in.OptedIn, want, err)
		}
	}
}
