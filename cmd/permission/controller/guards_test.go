package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	admissionpermission "github.com/breakwater-dev/breakwater/admission/permission"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/reconciler/selfcheck/selfchecktest"
	"github.com/breakwater-dev/breakwater/test/builder"
)

const manifests = "../../../config/permission/"

func namespace(name, label string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{podmeta.Label: label}}}
}

func TestEveryGuardOfTheManifestsIsMonitored(t *testing.T) {
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, n := range []*corev1.Namespace{namespace("shop", "enabled"), namespace("other", "no"), namespace("kube-system", "enabled")} {
		if err := index.Add(n); err != nil {
			t.Fatal(err)
		}
	}
	plan := planOf(corelisters.NewNamespaceLister(index))
	if plan.Service != admissionpermission.ServiceName || plan.Webhooks[0].Configuration != admissionpermission.Configuration {
		t.Errorf("looks after %+v", plan)
	}
	want := map[string]bool{}
	for _, w := range builder.Manifests[admissionregistrationv1.MutatingWebhookConfiguration](t, manifests+"430-webhook-mutating.yaml")[0].Webhooks {
		want["mutating "+w.Name] = *w.FailurePolicy == admissionregistrationv1.Ignore
	}
	for _, w := range builder.Manifests[admissionregistrationv1.ValidatingWebhookConfiguration](t, manifests+"431-webhook-validating.yaml")[0].Webhooks {
		want["validating "+w.Name] = *w.FailurePolicy == admissionregistrationv1.Ignore
	}
	got := map[string]bool{}
	for _, g := range plan.Webhooks {
		sort := "validating "
		if g.Mutating {
			sort = "mutating "
		}
		got[sort+g.Webhook] = g.FailsOpen
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-installed +looked after):\n%s", diff)
	}
	asked, err := plan.Webhooks[0].Namespaces()
	if err != nil || len(asked) != 1 || asked[0].Name != "shop" {
		t.Errorf("asked in %v, %v", asked, err)
	}
}

func TestEveryDenyingPolicyIsCheckedAndReadable(t *testing.T) {
	plan := planOf(nil)
	selfchecktest.CheckPolicies(t, plan, manifests+"3*.yaml")
	// Each binding has the name of its policy.
	if diff := cmp.Diff(plan.Policies, plan.Bindings); diff != "" {
		t.Errorf("(-policies +bindings):\n%s", diff)
	}
	named := selfchecktest.NamedInRules(t, manifests+"110-controller-rbac.yaml")
	for resource, want := range map[string][]string{
		"mutatingwebhookconfigurations":     {"breakwater-permission"},
		"validatingwebhookconfigurations":   {"breakwater-permission"},
		"validatingadmissionpolicies":       plan.Policies,
		"validatingadmissionpolicybindings": plan.Bindings,
	} {
		if diff := cmp.Diff(want, named[resource]); diff != "" {
			t.Errorf("%s (-needed +named):\n%s", resource, diff)
		}
	}
}

func TestTheProcessHasNoInformersOfTheWebhook(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.FieldsSeq(string(out)) {
		if strings.HasSuffix(path, "breakwater/admission/permission") {
			t.Errorf("it imports %s, and so watches what its RBAC does not let it", path)
		}
	}
}
