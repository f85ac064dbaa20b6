package overlays

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// config is the folder of the manifests.
var config = filepath.Join("..", "..", "config")

// folders are the installable folders: core, each overlay, and its overlays of other parts.
func folders(t *testing.T) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(config, "overlays"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{"core": filepath.Join(config, "core")}
	for _, e := range entries {
		out[e.Name()] = overlay(e.Name())
	}
	for _, name := range ofRabbitMQ {
		out[name] = overlay(name)
	}
	return out
}

// render returns the objects that kustomize renders from a folder.
func render(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	var out []*unstructured.Unstructured
	for _, r := range made.Resources() {
		raw, err := r.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(raw); err != nil {
			t.Fatal(err)
		}
		out = append(out, u)
	}
	return out
}

func overlay(name string) string { return filepath.Join(config, "overlays", name) }

// ofKind returns the objects of a group and kind.
func ofKind(all []*unstructured.Unstructured, group, kind string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, u := range all {
		if gvk := u.GroupVersionKind(); gvk.Group == group && gvk.Kind == kind {
			out = append(out, u)
		}
	}
	return out
}

// typed converts objects to their type.
func typed[T any](t *testing.T, all []*unstructured.Unstructured) []T {
	t.Helper()
	var out []T
	for _, u := range all {
		var v T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &v); err != nil {
			t.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
		}
		out = append(out, v)
	}
	return out
}
