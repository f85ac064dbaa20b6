package apidiscovery

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	discoveryfake "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
)

func TestOnlyANamespacedResourceOfTheVersionIsFound(t *testing.T) {
	client := &discoveryfake.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{{
		GroupVersion: "apps.kruise.io/v1alpha1",
		APIResources: []metav1.APIResource{
			{Name: "clonesets", Kind: "CloneSet", Namespaced: true},
			{Name: "clonesets/status", Kind: "CloneSet", Namespaced: true},
			{Name: "nodeimages", Kind: "NodeImage"},
		},
	}}}}
	for name, tc := range map[string]struct {
		version, resource, want string
	}{
		"it exists":          {"v1alpha1", "clonesets", "CloneSet"},
		"in another version": {"v1beta1", "clonesets", ""},
		"another resource":   {"v1alpha1", "statefulsets", ""},
		"cluster-scoped":     {"v1alpha1", "nodeimages", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := KindOf(client, schema.GroupVersionResource{Group: "apps.kruise.io", Version: tc.version, Resource: tc.resource})
			if err != nil || got != tc.want {
				t.Errorf("KindOf = %q, %v; want %q", got, err, tc.want)
			}
		})
	}
}
