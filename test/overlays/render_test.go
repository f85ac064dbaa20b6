package overlays

import (
	"os"
	"path/filepath"
	"strings"
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
	for part := range based(t) {
		for _, e := range entries {
			if folder := applied(t, e.Name(), part); strings.HasPrefix(folder, overlay("")) {
				out[strings.TrimPrefix(folder, overlay("")+"/")] = folder
			}
		}
	}
	return out
}

// based are the parts that overlays may change: those with a Kustomization.
func based(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(config, "*", "Kustomization"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d Kustomizations, %v", len(files), err)
	}
	out := map[string]bool{}
	for _, file := range files {
		out[filepath.Base(filepath.Dir(file))] = true
	}
	return out
}

// applied is the folder that hack/apply.sh applies for a part with OVERLAY=name.
func applied(t *testing.T, name, part string) string {
	t.Helper()
	if part == "core" {
		return overlay(name)
	}
	folder := filepath.Join(overlay(name), part)
	if _, err := os.Stat(folder); err == nil {
		return folder
	}
	return filepath.Join(config, part)
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
