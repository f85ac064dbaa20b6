package ownerchain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/breakwater-dev/breakwater/internal/budget"
)

// mapper also maps pods, CloneSets, Rollouts and cluster-scoped Fleets.
type mapper struct{ *meta.DefaultRESTMapper }

func (mapper) Reset() {}

func newMapper() mapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "CloneSet"}, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}, meta.RESTScopeNamespace)
	m.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Fleet"}, meta.RESTScopeRoot)
	return mapper{m}
}

func refTo(apiVersion, kind, name string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(name), Controller: new(true)}}
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
	deployment := func(change func(*metav1.PartialObjectMetadata)) runtime.Object {
		return object("apps/v1", "Deployment", "web", change)
	}
	for name, tc := range map[string]struct {
		objects   []runtime.Object
		forbidden bool
		want      string
		ok        bool
	}{
		"on the Deployment":                               {objects: []runtime.Object{rs(nil), deployment(annotated("a"))}, want: "a", ok: true},
		"removed from the Deployment":                     {objects: []runtime.Object{rs(annotated("a")), deployment(nil)}},
		"another one on the Deployment":                   {objects: []runtime.Object{rs(annotated("a")), deployment(annotated("b"))}, want: "b", ok: true},
		"empty on the ReplicaSet":                         {objects: []runtime.Object{rs(annotated("")), deployment(annotated("a"))}, want: "a", ok: true},
		"empty on the Deployment":                         {objects: []runtime.Object{rs(annotated("a")), deployment(annotated(""))}, ok: true},
		"on the ReplicaSet of a Deployment without reads": {objects: []runtime.Object{rs(annotated("a")), deployment(annotated("b"))}, forbidden: true, want: "a", ok: true},
		"on the ReplicaSet of a deleted Deployment":       {objects: []runtime.Object{rs(annotated("a"))}, want: "a", ok: true},
		"on the ReplicaSet of a recreated Deployment": {objects: []runtime.Object{rs(annotated("a")), deployment(func(o *metav1.PartialObjectMetadata) {
			o.UID = "next"
		})}, want: "a", ok: true},
		"on a ReplicaSet without a Deployment": {objects: []runtime.Object{object("apps/v1", "ReplicaSet", "web-1", annotated("a"))}, want: "a", ok: true},
		"on the ReplicaSet of another kind": {objects: []runtime.Object{
			object("apps/v1", "ReplicaSet", "web-1", func(o *metav1.PartialObjectMetadata) {
				annotated("a")(o)
				o.OwnerReferences = refTo("apps.kruise.io/v1alpha1", "CloneSet", "web")
			}),
			object("apps.kruise.io/v1alpha1", "CloneSet", "web", nil),
		}, want: "a", ok: true},
		"removed from the Rollout": {objects: []runtime.Object{
			object("apps/v1", "ReplicaSet", "web-1", func(o *metav1.PartialObjectMetadata) {
				annotated("a")(o)
				o.OwnerReferences = refTo("argoproj.io/v1alpha1", "Rollout", "web")
			}),
			object("argoproj.io/v1alpha1", "Rollout", "web", nil),
		}},
		"above the Deployment": {objects: []runtime.Object{
			rs(annotated("a")),
			deployment(func(o *metav1.PartialObjectMetadata) {
				o.OwnerReferences = refTo("apps.kruise.io/v1alpha1", "CloneSet", "web")
			}),
			object("apps.kruise.io/v1alpha1", "CloneSet", "web", annotated("b")),
		}, want: "b", ok: true},
		"on a pod": {objects: []runtime.Object{
			object("apps/v1", "ReplicaSet", "web-1", func(o *metav1.PartialObjectMetadata) { o.OwnerReferences = refTo("v1", "Pod", "leader") }),
			object("v1", "Pod", "leader", annotated("a")),
		}},
		"on no owner":     {objects: []runtime.Object{rs(nil), deployment(nil)}},
		"no owner exists": {},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := metadatafake.NewTestScheme()
			if err := metav1.AddMetaToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			client := metadatafake.NewSimpleMetadataClient(scheme, tc.objects...)
			if tc.forbidden {
				client.PrependReactor("get", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrs.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "web", nil)
				})
			}
			f := New(client, newMapper())
			got, ok, err := f.Annotation(t.Context(), "ns", refTo("apps/v1", "ReplicaSet", "web-1"), "key")
			if err != nil || got != tc.want || ok != tc.ok {
				t.Errorf("%q %v %v, want %q %v", got, ok, err, tc.want, tc.ok)
			}
		})
	}
}

// Otherwise pods of a new template lack the annotation that the Deployment got with it.
func TestACachedDeploymentDoesNotHideTheAnnotationOfItsNewReplicaSet(t *testing.T) {
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	rs := func(name string, annotations map[string]string) runtime.Object {
		return object("apps/v1", "ReplicaSet", name, func(o *metav1.PartialObjectMetadata) {
			o.OwnerReferences, o.Annotations = refTo("apps/v1", "Deployment", "web"), annotations
		})
	}
	annotations := map[string]string{"key": "a"}
	client := metadatafake.NewSimpleMetadataClient(scheme, rs("web-1", nil), rs("web-2", annotations), object("apps/v1", "Deployment", "web", nil))
	f := New(client, newMapper())
	if got, ok, err := f.Annotation(t.Context(), "ns", refTo("apps/v1", "ReplicaSet", "web-1"), "key"); err != nil || ok {
		t.Fatalf("before: %q %v %v, want none", got, ok, err)
	}
	client.PrependReactor("get", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, object("apps/v1", "Deployment", "web", func(o *metav1.PartialObjectMetadata) { o.Annotations = annotations }), nil
	})
	if got, ok, err := f.Annotation(t.Context(), "ns", refTo("apps/v1", "ReplicaSet", "web-2"), "key"); err != nil || got != "a" || !ok {
		t.Errorf("%q %v %v, want a", got, ok, err)
	}
}
