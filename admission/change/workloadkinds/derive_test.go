package workloadkinds

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// manifest reads a webhook configuration of the manifests.
func manifest[T any](t *testing.T, name string) *T {
	t.Helper()
	raw, err := os.ReadFile("../../../config/core/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var config T
	if err := yaml.UnmarshalStrict(raw, &config); err != nil {
		t.Fatal(err)
	}
	return &config
}

func installed(t *testing.T) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	t.Helper()
	return manifest[admissionregistrationv1.MutatingWebhookConfiguration](t, "430-webhook-mutating.yaml"),
		manifest[admissionregistrationv1.ValidatingWebhookConfiguration](t, "431-webhook-validating.yaml")
}

// The webhooks in the manifests equal those that would be generated.
func TestDerivedWebhooksOfBuiltInKindsEqualThoseOfDeployments(t *testing.T) {
	mutating, validating := installed(t)
	for _, kind := range workload.BuiltIn() {
		t.Run(kind.Kind, func(t *testing.T) {
			wantM, ok := webhook(mutating.Webhooks, mutatingName, suspend.MutatingWebhook(kind))
			if !ok {
				t.Fatal("no mutating webhook is installed")
			}
			of, _ := webhook(mutating.Webhooks, mutatingName, suspend.MutatingWebhook(workload.Deployment))
			if diff := cmp.Diff(wantM, DeriveMutating(of, kind)); diff != "" {
				t.Error(diff)
			}
			wantV, ok := webhook(validating.Webhooks, validatingName, suspend.ValidatingWebhook(kind))
			if !ok {
				t.Fatal("no validating webhook is installed")
			}
			from, _ := webhook(validating.Webhooks, validatingName, suspend.ValidatingWebhook(workload.Deployment))
			if diff := cmp.Diff(wantV, DeriveValidating(from, kind), oneLine); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// oneLine ignores the line breaks of an expression.
var oneLine = cmp.Transformer("fields", func(c admissionregistrationv1.MatchCondition) []string {
	return append([]string{c.Name}, strings.Fields(c.Expression)...)
})

func TestAFieldIsSelectedAsCELWantsIt(t *testing.T) {
	for path, want := range map[string]string{
		"spec.paused":                "object.spec.?paused.orValue(false)",
		"spec.updateStrategy.paused": "object.spec.?updateStrategy.?paused.orValue(false)",
		"spec.namespace.is-paused":   "object.spec[?'namespace'][?'is-paused'].orValue(false)",
	} {
		kind := workload.Deployment
		kind.PauseField.Path = strings.Split(path, ".")
		if got := paused("object", kind); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}
