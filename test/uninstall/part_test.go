package uninstall

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// folders are the folders of the manifests that are removed with a part. Parts judge and notify need part change.
var folders = map[string][]string{
	"change":     {"core", "judge", "notify"},
	"protection": {"protection"},
	"permission": {"permission"},
}

// deletion is a call of kubectl that deletes objects by their labels.
type deletion struct {
	kinds    []string
	selector labels.Selector
}

func (d deletion) removes(o *unstructured.Unstructured) bool {
	plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
	named := slices.Contains(d.kinds, plural.GroupResource().String()) ||
		!strings.HasSuffix(plural.Group, "knative.dev") && slices.Contains(d.kinds, plural.Resource)
	return named && d.selector.Matches(labels.Set(o.GetLabels()))
}

func deletions(t *testing.T, calls []string) []deletion {
	t.Helper()
	var found []deletion
	for _, c := range calls {
		call, selector, ok := strings.Cut(c, " -l ")
		arguments, isDelete := strings.CutPrefix(call, "delete --ignore-not-found --timeout=3m ")
		if !ok || !isDelete {
			continue
		}
		parsed, err := labels.Parse(selector)
		if err != nil {
			t.Fatal(err)
		}
		kinds, _, _ := strings.Cut(arguments, " ")
		found = append(found, deletion{strings.Split(kinds, ","), parsed})
	}
	return found
}

// The script knows the part of an object by its labels. CRDs are removed by their groups.
func TestEachObjectIsRemovedWithItsPartAndNoOther(t *testing.T) {
	for part, own := range folders {
		out, calls, ok := removeWith(t, "case \"$*\" in \"get crd \"*) exit 1 ;; esac\n", "--part", part)
		if !ok || contains(calls, "delete", "namespace altershieldoperator-system") {
			t.Fatalf("%s: ended without an error: %t\n%s", part, ok, out)
		}
		all := deletions(t, calls)
		for _, folder := range []string{"core", "judge", "notify", "monitoring", "protection", "permission"} {
			for _, o := range manifests(t, folder) {
				if o.GetKind() == "CustomResourceDefinition" {
					continue
				}
				want := slices.Contains(own, folder) && o.GetKind() != "Namespace"
				if got := slices.ContainsFunc(all, func(d deletion) bool { return d.removes(o) }); got != want {
					t.Errorf("part %s: %s %s of config/%s is removed: %t, want %t", part, o.GetKind(), o.GetName(), folder, got, want)
				}
			}
		}
	}
}

func TestAnUnknownPartIsAnError(t *testing.T) {
	for _, args := range [][]string{{"--part", "judge"}, {"--part"}, {"--part", ""}} {
		if out, _, ok := removeWith(t, "", args...); ok || !strings.Contains(out, "use change, protection or permission") {
			t.Errorf("%q: %s", args, out)
		}
	}
}

// The labels of an earlier version do not tell the objects of the parts apart.
func TestNoPartOfAnEarlierVersionIsRemoved(t *testing.T) {
	const earlier = "case \"$*\" in \"get clusterroles -l \"*\"!app.kubernetes.io/component\"*) echo clusterrole.rbac.authorization.k8s.io/breakwater-permission-view ;; esac\n"
	out, calls, ok := removeWith(t, earlier, "--part", "change")
	if ok || !strings.Contains(out, "breakwater-permission-view") || !strings.Contains(out, "apply the manifests of this version first") {
		t.Error(out)
	}
	if contains(calls, "delete", "") || contains(calls, "patch", "") {
		t.Errorf("called %q", calls)
	}
}

func manifests(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../config", folder, "[0-9]*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("config/%s: %d files, %v", folder, len(files), err)
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range strings.Split(string(raw), "\n---\n") {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if o.Object != nil {
				all = append(all, o)
			}
		}
	}
	return all
}
