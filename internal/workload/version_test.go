package workload_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

func TestDifferentTemplatesHaveDifferentVersions(t *testing.T) {
	a, err := workload.Version(workload.Deployment, &corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeName: "a"}})
	if err != nil || len(a) != 32 {
		t.Errorf("version %q, %v", a, err)
	}
	if b, _ := workload.Version(workload.Deployment, &corev1.PodTemplateSpec{}); a == b {
		t.Error("two templates have the same version")
	}
}

func TestIsTemplateVersionAcceptsComputedVersionsOnly(t *testing.T) {
	computed, err := workload.Version(workload.Deployment, &corev1.PodTemplateSpec{})
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		version string
		want    bool
	}{
		"a result of Version": {computed, true},
		"empty":               {"", false},
		"another length":      {computed[:30], false},
		"not hexadecimal":     {"x" + computed[1:], false},
		"a relative path":     {"../" + computed[3:], false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := v1alpha1.IsTemplateVersion(tc.version); got != tc.want {
				t.Errorf("IsTemplateVersion(%q) = %v, want %v", tc.version, got, tc.want)
			}
		})
	}
}
