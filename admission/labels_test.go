package admission_test

import (
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/test/builder"
)

// The Admissions Enforcer of AKS adds expressions to each namespaceSelector, also again after a webhook
// has restored its list, unless the configuration has the label.
func TestEveryWebhookConfigurationIsExcludedFromTheAdmissionsEnforcer(t *testing.T) {
	files, err := filepath.Glob("../config/*/43*.yaml")
	if err != nil || len(files) != 6 {
		t.Fatalf("the manifests are %v, %v", files, err)
	}
	for _, file := range files {
		for _, config := range builder.Manifests[metav1.PartialObjectMetadata](t, file) {
			if config.Labels["admissions.enforcer/disabled"] != "true" {
				t.Errorf("%s %s in %s lacks label admissions.enforcer/disabled", config.Kind, config.Name, file)
			}
		}
	}
}
