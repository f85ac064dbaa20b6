package overlays

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/settings"
)

// policies returns the failurePolicy of every webhook.
func policies(t *testing.T, all []*unstructured.Unstructured) map[string]string {
	t.Helper()
	const group = "admissionregistration.k8s.io"
	out := map[string]string{}
	for _, c := range typed[admissionregistrationv1.MutatingWebhookConfiguration](t, ofKind(all, group, "MutatingWebhookConfiguration")) {
		for i := range c.Webhooks {
			out[c.Webhooks[i].Name] = string(*c.Webhooks[i].FailurePolicy)
		}
	}
	for _, c := range typed[admissionregistrationv1.ValidatingWebhookConfiguration](t, ofKind(all, group, "ValidatingWebhookConfiguration")) {
		for i := range c.Webhooks {
			out[c.Webhooks[i].Name] = string(*c.Webhooks[i].FailurePolicy)
		}
	}
	if len(out) < 4 {
		t.Fatalf("only %v", out)
	}
	return out
}

// inForce returns the settings that an overlay's objects result in.
func inForce(t *testing.T, all []*unstructured.Unstructured) settings.Settings {
	t.Helper()
	objects := typed[v1alpha1.OpsConfigInfo](t, ofKind(all, v1alpha1.SchemeGroupVersion.Group, "OpsConfigInfo"))
	var in []*v1alpha1.OpsConfigInfo
	for i := range objects {
		if err := objects[i].Validate(t.Context()); err != nil {
			t.Errorf("%s: %v", objects[i].Name, err)
		}
		in = append(in, &objects[i])
	}
	return settings.FromObjects(in)
}

func TestTheStrictOverlayFailsClosedHoldsUnjudgedReleasesAndRestrictsRepairs(t *testing.T) {
	all := render(t, overlay("strict"))
	for webhook, policy := range policies(t, all) {
		if policy != "Fail" {
			t.Errorf("%s: failurePolicy %s", webhook, policy)
		}
	}
	want := settings.Default()
	want.Bypass = v1alpha1.BypassAuthorized
	want.NoVerdict, want.ReleaseCheckNoVerdict = v1alpha1.NoVerdictHold, v1alpha1.NoVerdictFail
	if diff := cmp.Diff(want, inForce(t, all)); diff != "" {
		t.Error(diff)
	}
}

func TestTheShadowOverlayTurnsShadowOnAndWebhooksFailOpen(t *testing.T) {
	all := render(t, overlay("shadow"))
	for webhook, policy := range policies(t, all) {
		if policy != "Ignore" {
			t.Errorf("%s: failurePolicy %s", webhook, policy)
		}
	}
	if s := inForce(t, all); !s.Shadow || s.Blocking {
		t.Errorf("the settings are %+v", s)
	}
}

func TestTheNoScaleToZeroOverlayKeepsOnePodOfEveryFunction(t *testing.T) {
	functions := ofKind(render(t, overlay("no-scale-to-zero")), "serving.knative.dev", "Service")
	if len(functions) < 5 {
		t.Fatalf("%d functions", len(functions))
	}
	for _, f := range functions {
		least, _, err := unstructured.NestedString(f.Object, "spec", "template", "metadata", "annotations", "autoscaling.knative.dev/min-scale")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := strconv.Atoi(least); err != nil || n < 1 {
			t.Errorf("%s: min-scale %q", f.GetName(), least)
		}
	}
}
