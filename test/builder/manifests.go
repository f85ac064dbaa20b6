package builder

import (
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// Manifests returns the documents of a YAML file; all are of type T.
func Manifests[T any](t *testing.T, path string) []T {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []T
	for _, doc := range strings.Split(string(raw), "\n---\n") {
		var one T
		if err := yaml.Unmarshal([]byte(doc), &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// CheckGracePeriod checks that the grace period of the pods of a manifest, which begins with their Deployment, exceeds the
// time that their process needs to end.
func CheckGracePeriod(t *testing.T, path string, needed time.Duration) {
	t.Helper()
	grace := time.Duration(*Manifests[appsv1.Deployment](t, path)[0].Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second
	if grace <= needed {
		t.Errorf("%s: a pod is killed after %s, want more than %s", path, grace, needed)
	}
}
