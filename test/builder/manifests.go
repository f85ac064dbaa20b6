package builder

import (
	"os"
	"strings"
	"testing"

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
