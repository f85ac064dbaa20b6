package ownerchain

import (
	"errors"
	"strings"
	"testing"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

func controller(apiVersion, kind, name string, selector map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"namespace": "ns", "name": name, "uid": name},
		"spec": map[string]any{"selector": selector},
	}}
}

// A user can edit the references of a pod. The other pods of its controller are not affected.
func TestAnotherControllerWithTheSameUIDIsReadItself(t *testing.T) {
	byLabel := map[string]any{"matchLabels": map[string]any{"app": "web"}}
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), controller("apps/v1", "ReplicaSet", "web-1", byLabel))
	f := New(metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme()), newMapper()).WithObjects(client)
	edited := refTo("apps/v1", "ReplicaSet", "web-1")
	edited[0].Name = "gone"
	for _, tc := range []struct {
		refs []metav1.OwnerReference
		gone bool
	}{{edited, true}, {refTo("apps/v1", "ReplicaSet", "web-1"), false}, {edited, true}} {
		got, err := f.SelectorOf(t.Context(), "ns", tc.refs)
		if err != nil || got.TerminatingOrGone != tc.gone {
			t.Errorf("%s: %+v, %v", tc.refs[0].Name, got, err)
		}
	}
}

func TestWhichPodsAControllerSelects(t *testing.T) {
	byLabel := map[string]any{"matchLabels": map[string]any{"app": "web"}}
	ending := controller("apps/v1", "ReplicaSet", "web-1", byLabel)
	ending.SetDeletionTimestamp(&metav1.Time{})
	ending.SetFinalizers([]string{"orphan"})
	ending.Object["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	another := controller("apps/v1", "ReplicaSet", "web-1", byLabel)
	another.SetUID("next")
	selectorless := controller("apps.kruise.io/v1alpha1", "CloneSet", "web", nil)
	unstructured.RemoveNestedField(selectorless.Object, "spec", "selector")
	ofType := selectorless.DeepCopy()
	if err := unstructured.SetNestedField(ofType.Object, "app=web", "spec", "selector"); err != nil {
		t.Fatal(err)
	}
	fleet := controller("example.com/v1", "Fleet", "web", byLabel)
	fleet.SetNamespace("")
	for _, tc := range []struct {
		name string
		// unknown is part of the reason why the selector is unknown.
		unknown   string
		refs      []metav1.OwnerReference
		there     []runtime.Object
		forbidden bool
		// matches are labels that the selector matches; empty when it is
		// unknown.
		matches labels.Set
		// all reports whether the selector matches all labels.
		all  bool
		gone bool
	}{
		{name: "a ReplicaSet", refs: refTo("apps/v1", "ReplicaSet", "web-1"), matches: labels.Set{"app": "web"},
			there: []runtime.Object{controller("apps/v1", "ReplicaSet", "web-1", byLabel)}},
		{name: "a ReplicationController", refs: refTo("v1", "ReplicationController", "web"), matches: labels.Set{"app": "web"},
			there: []runtime.Object{controller("v1", "ReplicationController", "web", map[string]any{"app": "web"})}},
		{name: "a CloneSet", refs: refTo("apps.kruise.io/v1alpha1", "CloneSet", "web"), matches: labels.Set{"app": "web"},
			there: []runtime.Object{controller("apps.kruise.io/v1alpha1", "CloneSet", "web", byLabel)}},
		{name: "a cluster-scoped custom resource", refs: refTo("example.com/v1", "Fleet", "web"), matches: labels.Set{"app": "web"}, there: []runtime.Object{fleet}},
		{name: "a terminating owner", refs: refTo("apps/v1", "ReplicaSet", "web-1"), there: []runtime.Object{ending}, matches: labels.Set{"app": "web"}, gone: true},
		{name: "a replaced owner", refs: refTo("apps/v1", "ReplicaSet", "web-1"), there: []runtime.Object{another}, matches: labels.Set{"app": "web"}, gone: true},
		{name: "a deleted owner", refs: refTo("apps/v1", "ReplicaSet", "web-1"), gone: true},
		{name: "no owner", gone: true},
		{name: "an owner without read permission", refs: refTo("apps/v1", "ReplicaSet", "web-1"), forbidden: true,
			unknown: `the selector of ReplicaSet web-1 is unknown: reading it is forbidden: permit get on replicasets of group "apps"`},
		{name: "an unknown kind", refs: refTo("nowhere/v1", "Thing", "web"),
			unknown: "the selector of Thing web is unknown: the API server does not serve the kind"},
		{name: "no selector", refs: refTo("apps.kruise.io/v1alpha1", "CloneSet", "web"), matches: labels.Set{"app": "web"}, all: true,
			there: []runtime.Object{selectorless}},
		{name: "a selector of another type", refs: refTo("apps.kruise.io/v1alpha1", "CloneSet", "web"),
			there: []runtime.Object{ofType}, unknown: "the selector of CloneSet web is unknown: it is no label selector"},
		{name: "an invalid selector", refs: refTo("apps/v1", "ReplicaSet", "web-1"),
			there:   []runtime.Object{controller("apps/v1", "ReplicaSet", "web-1", map[string]any{"matchLabels": "web"})},
			unknown: "the selector of ReplicaSet web-1 is unknown: it is no label selector"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), tc.there...)
			if tc.forbidden {
				client.PrependReactor("get", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrs.NewForbidden(schema.GroupResource{Resource: "replicasets"}, "web-1", errors.New("no"))
				})
			}
			f := New(metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme()), newMapper()).WithObjects(client)
			got, err := f.SelectorOf(t.Context(), "ns", tc.refs)
			if err != nil {
				t.Fatal(err)
			}
			if got.TerminatingOrGone != tc.gone || (got.Selector != nil) != (len(tc.matches) > 0) {
				t.Fatalf("%+v", got)
			}
			if (got.Unknown != "") != (got.Selector == nil && !got.TerminatingOrGone) || !strings.HasPrefix(got.Unknown, tc.unknown) {
				t.Errorf("unknown because %q", got.Unknown)
			}
			if got.Selector != nil && (!got.Selector.Matches(tc.matches) || got.Selector.Matches(labels.Set{"app": "db"}) != tc.all) {
				t.Errorf("selector is %s", got.Selector)
			}
		})
	}
}
