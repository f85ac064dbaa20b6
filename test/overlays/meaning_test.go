package overlays

import (
	"os"
	"path/filepath"
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

// Three parts have the Namespace, so the part that is applied last decides.
func TestEachPartOfAnOverlayEnforcesTheSamePodSecurity(t *testing.T) {
	const core, label = "core", "pod-security.kubernetes.io/enforce"
	entries, err := os.ReadDir(filepath.Join(config, "overlays"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		levels := map[string]string{}
		for part := range based(t) {
			for _, n := range ofKind(render(t, applied(t, e.Name(), part)), "", "Namespace") {
				levels[part] = n.GetLabels()[label]
			}
		}
		want := map[string]string{core: levels[core], "protection": levels[core], "permission": levels[core]}
		if diff := cmp.Diff(want, levels); diff != "" || levels[core] == "" {
			t.Errorf("levels with %s (-want +got):\n%s", e.Name(), diff)
		}
	}
}

func TestTheRabbitMQOverlayAdmitsPodsWithoutASeccompProfile(t *testing.T) {
	for _, n := range ofKind(render(t, overlay("rabbitmq")), "", "Namespace") {
		if level := n.GetLabels()["pod-security.kubernetes.io/enforce"]; level != "baseline" {
			t.Errorf("level %q", level)
		}
	}
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
