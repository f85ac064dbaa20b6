package ownerchain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/internal/budget"
)

// mapper also maps CloneSets and cluster-scoped Fleets.
type mapper struct{ *meta.DefaultRESTMapper }

func (mapper) Reset() {}

func newMapper() mapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Fleet"}, meta.RESTScopeRoot)
	return mapper{m}
}

func refTo(apiVersion, kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(name), Controller: ptr.To(true)}}
}

func object(apiVersion, kind, name string, change func(*metav1.PartialObjectMetadata)) runtime.Object {
	o := &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
	}
	if change != nil {
		change(o)
	}
	return o
}

func TestChains(t *testing.T) {
	rs := object("apps/v1", "ReplicaSet", "web-1", func(o *metav1.PartialObjectMetadata) {
		o.OwnerReferences = refTo("apps/v1", "Deployment", "web")
	})
	deployment := object("apps/v1", "Deployment", "web", nil)
	terminating := object("apps/v1", "Deployment", "web", func(o *metav1.PartialObjectMetadata) {
		o.DeletionTimestamp, o.Finalizers = &metav1.Time{}, []string{"foregroundDeletion"}
	})
	another := object("apps/v1", "Deployment", "web", func(o *metav1.PartialObjectMetadata) { o.UID = "next" })
	owner := func(group, kind, name string, gone bool) budget.Owner {
		return budget.Owner{Group: group, Kind: kind, Name: name, UID: types.UID(name), TerminatingOrGone: gone}
	}
	ofSet := refTo("apps/v1", "ReplicaSet", "web-1")
	for _, tc := range []struct {
		name    string
		refs    []metav1.OwnerReference
		objects []runtime.Object
		want    budget.Chain
	}{
		{"an orphan", nil, nil, nil},
		{"an owner that controls nothing", []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a"}}, nil, nil},
		{"a pod of a Deployment", ofSet, []runtime.Object{rs, deployment},
			budget.Chain{owner("apps", "ReplicaSet", "web-1", false), owner("apps", "Deployment", "web", false)}},
		{"a pod of a terminating Deployment", ofSet, []runtime.Object{rs, terminating},
			budget.Chain{owner("apps", "ReplicaSet", "web-1", false), owner("apps", "Deployment", "web", true)}},
		{"a pod of a replaced Deployment", ofSet, []runtime.Object{rs, another},
			budget.Chain{owner("apps", "ReplicaSet", "web-1", false), owner("apps", "Deployment", "web", true)}},
		{"a pod of a deleted owner", ofSet, nil, budget.Chain{owner("apps", "ReplicaSet", "web-1", true)}},
		{"a pod of a custom kind", refTo("apps.kruise.io/v1alpha1", "CloneSet", "web"),
			[]runtime.Object{object("apps.kruise.io/v1alpha1", "CloneSet", "web", nil)},
			budget.Chain{owner("apps.kruise.io", "CloneSet", "web", false)}},
		{"a pod of an unknown kind", refTo("nowhere/v1", "Thing", "web"), nil,
			budget.Chain{owner("nowhere", "Thing", "web", false)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			scheme := metadatafake.NewTestScheme()
			if err := metav1.AddMetaToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			f := New(metadatafake.NewSimpleMetadataClient(scheme, tc.objects...), newMapper())
			got, err := f.Chain(t.Context(), "ns", tc.refs, false)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestALiveReadIgnoresTheCache(t *testing.T) {
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	client := metadatafake.NewSimpleMetadataClient(scheme, object("apps/v1", "ReplicaSet", "web-1", nil))
	f := New(client, newMapper())
	ending := func(live bool) bool {
		chain, err := f.Chain(t.Context(), "ns", refTo("apps/v1", "ReplicaSet", "web-1"), live)
		if err != nil {
			t.Fatal(err)
		}
		return chain.TopmostTerminatingOrGone()
	}
	if ending(false) {
		t.Fatal("the owner is not terminating")
	}
	resource := schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
	if err := client.Resource(resource).Namespace("ns").Delete(t.Context(), "web-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if ending(false) {
		t.Error("the second read was not cached")
	}
	if !ending(true) || !ending(false) {
		t.Error("the owner is missing")
	}
}

func TestTheAnnotationOfTheNearestOwnerCounts(t *testing.T) {
	annotated := func(value string) func(*metav1.PartialObjectMetadata) {
		return func(o *metav1.PartialObjectMetadata) { o.Annotations = map[string]string{"key": value} }
	}
	rs := func(change func(*metav1.PartialObjectMetadata)) runtime.Object {
		return object("apps/v1", "ReplicaSet", "web-1", func(o *metav1.PartialObjectMetadata) {
			o.OwnerReferences = refTo("apps/v1", "Deployment", "web")
			if change != nil {
				change(o)
			}
		})
	}
	for name, tc := range map[string]struct {
		objects []runtime.Object
		want    string
		ok      bool
	}{
		"on the Deployment":       {[]runtime.Object{rs(nil), object("apps/v1", "Deployment", "web", annotated("a"))}, "a", true},
		"on the ReplicaSet":       {[]runtime.Object{rs(annotated("b")), object("apps/v1", "Deployment", "web", annotated("a"))}, "b", true},
		"empty on the ReplicaSet": {[]runtime.Object{rs(annotated("")), object("apps/v1", "Deployment", "web", annotated("a"))}, "", true},
		"on no owner":             {[]runtime.Object{rs(nil), object("apps/v1", "Deployment", "web", nil)}, "", false},
		"no owner exists":         {nil, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := metadatafake.NewTestScheme()
			if err := metav1.AddMetaToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			f := New(metadatafake.NewSimpleMetadataClient(scheme, tc.objects...), newMapper())
			got, ok, err := f.Annotation(t.Context(), "ns", refTo("apps/v1", "ReplicaSet", "web-1"), "key")
			if err != nil || got != tc.want || ok != tc.ok {
				t.Errorf("%q %v %v, want %q %v", got, ok, err, tc.want, tc.ok)
			}
		})
	}
}
