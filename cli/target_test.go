package cli

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Commands read an object again by its printed name, and people copy it.
func TestAPrintedNameNamesNoOtherKind(t *testing.T) {
	for want, of := range map[string][2]string{
		"deployment/web":                         {"apps/v1", "Deployment"},
		"statefulset/web":                        {"apps/v1", "StatefulSet"},
		"daemonset/web":                          {"apps/v1", "DaemonSet"},
		"service/web":                            {"v1", "Service"},
		"services.serving.knative.dev/web":       {"serving.knative.dev/v1", "Service"},
		"statefulset.apps.kruise.io/web":         {"apps.kruise.io/v1beta1", "StatefulSet"},
		"rollout.argoproj.io/web":                {"argoproj.io/v1alpha1", "Rollout"},
		"changepod.app.ops.cloud.alipay.com/web": {"app.ops.cloud.alipay.com/v1alpha1", "ChangePod"},
	} {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": of[0], "kind": of[1], "metadata": map[string]any{"name": "web"}}}
		if got := (target{object: o}).String(); got != want {
			t.Errorf("%s of %s is printed as %s, want %s", of[1], of[0], got, want)
		}
	}
}
