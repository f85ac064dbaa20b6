package workload_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

func TestWhichStrategiesReplacePodsGradually(t *testing.T) {
	for strategy, want := range map[string]bool{
		"": true, "RollingUpdate": true, "ReCreate": true, "InPlaceIfPossible": true, // the last two are of CloneSets
		"Recreate": false, "OnDelete": false,
	} {
		for _, field := range []string{"strategy", "updateStrategy"} {
			w, err := workload.FromUnstructured(workload.Deployment, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment",
				"spec": map[string]any{field: map[string]any{"type": strategy}, "template": map[string]any{}},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if w.ReplacesGradually != want {
				t.Errorf("%s %q: ReplacesGradually %t, want %t", field, strategy, w.ReplacesGradually, want)
			}
		}
	}
}
