package ownerchain

import (
	"net/http"
	"testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

// rediscovered is a mapper that knows CloneSets in v1alpha1 and, after the next discovery, in the
// versions that are served by then.
type rediscovered struct {
	meta.RESTMapper
	served []string
}

func (r *rediscovered) Reset() { r.RESTMapper = mapperOf(r.served...) }

func mapperOf(versions ...string) meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "apps.kruise.io", Version: "v1"}})
	for _, version := range versions {
		m.Add(schema.GroupVersionKind{Group: "apps.kruise.io", Version: version, Kind: "CloneSet"}, meta.RESTScopeNamespace)
	}
	return m
}

// unserved answers as the API server does for a version that a CRD does not serve.
func unserved(a clienttesting.Action) (bool, runtime.Object, error) {
	if a.GetResource().Version != "v1alpha1" {
		return false, nil, nil
	}
	return true, nil, apierrs.NewGenericServerResponse(http.StatusNotFound, "get", a.GetResource().GroupResource(), "web", "404 page not found", 0, true)
}

func TestAnOwnerInAVersionThatIsNotServedAnymoreExists(t *testing.T) {
	refs := refTo("apps.kruise.io/v1alpha1", "CloneSet", "web")
	for name, tc := range map[string]struct {
		served  []string
		objects bool
		wantErr bool
		gone    bool
	}{
		"it is read in another version":               {served: []string{"v1"}, objects: true},
		"it does not exist in another version either": {served: []string{"v1"}, gone: true},
		"its kind is not served anymore":              {},
		"discovery does not know yet what is served":  {served: []string{"v1alpha1"}, wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := metadatafake.NewTestScheme()
			if err := metav1.AddMetaToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			var owners, objects []runtime.Object
			if tc.objects {
				owners = append(owners, object("apps.kruise.io/v1", "CloneSet", "web", nil))
				objects = append(objects, controller("apps.kruise.io/v1", "CloneSet", "web", map[string]any{"matchLabels": map[string]any{"app": "web"}}))
			}
			newFinder := func() *Finder {
				client, dynamic := metadatafake.NewSimpleMetadataClient(scheme, owners...), dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), objects...)
				client.PrependReactor("get", "*", unserved)
				dynamic.PrependReactor("get", "*", unserved)
				return New(client, &rediscovered{mapperOf("v1alpha1"), tc.served}).WithObjects(dynamic)
			}
			chain, err := newFinder().Chain(t.Context(), "ns", refs, true)
			if (err != nil) != tc.wantErr || err == nil && chain.TopmostTerminatingOrGone() != tc.gone {
				t.Errorf("chain %+v, %v", chain, err)
			}
			got, err := newFinder().SelectorOf(t.Context(), "ns", refs)
			if (err != nil) != tc.wantErr || got.TerminatingOrGone != tc.gone {
				t.Errorf("selection %+v, %v", got, err)
			}
			if tc.objects && (got.Selector == nil || !got.Selector.Matches(labels.Set{"app": "web"})) {
				t.Errorf("selector is %v", got.Selector)
			}
		})
	}
}
