// Package manifest reads limits and settings of containers from the manifests, so that a test does
// not repeat them.
package manifest

import (
	"bytes"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// Resources are the memory limits of the first container of a workload, in bytes.
type Resources struct {
	// Memory is limits.memory, and SoftMemory the value of GOMEMLIMIT.
	Memory, SoftMemory int64
}

// ResourcesOf reads the limits of the Deployment or Knative Service in a file.
func ResourcesOf(t testing.TB, file string) Resources {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range bytes.Split(raw, []byte("\n---\n")) {
		var workload struct {
			Spec struct{ Template corev1.PodTemplateSpec }
		}
		if err := yaml.Unmarshal(document, &workload); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if len(workload.Spec.Template.Spec.Containers) == 0 {
			continue
		}
		container := workload.Spec.Template.Spec.Containers[0]
		found := Resources{Memory: container.Resources.Limits.Memory().Value()}
		for _, e := range container.Env {
			if e.Name == "GOMEMLIMIT" {
				found.SoftMemory = goMemory(t, e.Value)
			}
		}
		if found.SoftMemory <= 0 || found.SoftMemory >= found.Memory {
			t.Fatalf("%s: GOMEMLIMIT is not below limits.memory: %+v", file, found)
		}
		return found
	}
	t.Fatalf("%s has no containers", file)
	return Resources{}
}

// goMemory parses a value of GOMEMLIMIT: its unit is that of a quantity with a B.
func goMemory(t testing.TB, value string) int64 {
	t.Helper()
	q, err := resource.ParseQuantity(strings.TrimSuffix(value, "B"))
	if err != nil {
		t.Fatalf("GOMEMLIMIT %s: %v", value, err)
	}
	return q.Value()
}
