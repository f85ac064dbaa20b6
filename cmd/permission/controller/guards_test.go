package main

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	admissionpermission "github.com/breakwater-dev/breakwater/admission/permission"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
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
		got[sort+g.Webhook] = g.Ignores
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
	files, err := filepath.Glob(manifests + "3*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var installed, ignoring []string
	for _, file := range files {
		for _, b := range builder.Manifests[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, file) {
			if b.Kind == "ValidatingAdmissionPolicyBinding" && slices.Contains(b.Spec.ValidationActions, admissionregistrationv1.Deny) {
				if b.Name != b.Spec.PolicyName {
					t.Errorf("%s binds %s", b.Name, b.Spec.PolicyName)
				}
				installed = append(installed, b.Name)
			}
		}
		for _, p := range builder.Manifests[admissionregistrationv1.ValidatingAdmissionPolicy](t, file) {
			if p.Kind == "ValidatingAdmissionPolicy" && slices.Contains(installed, p.Name) && *p.Spec.FailurePolicy == admissionregistrationv1.Ignore {
				ignoring = append(ignoring, p.Name)
			}
		}
	}
	plan := planOf(nil)
	for what, got := range map[string][]string{"policies": plan.Policies, "bindings": plan.Bindings} {
		if diff := cmp.Diff(installed, got); diff != "" {
			t.Errorf("%s (-installed +looked after):\n%s", what, diff)
		}
	}
	if diff := cmp.Diff(ignoring, plan.Ignoring); diff != "" {
		t.Errorf("policies with failurePolicy Ignore (-installed +looked after):\n%s", diff)
	}
	named := map[string][]string{}
	for _, role := range builder.Manifests[rbacv1.ClusterRole](t, manifests+"110-controller-rbac.yaml") {
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				named[resource] = append(named[resource], rule.ResourceNames...)
			}
		}
	}
	for resource, want := range map[string][]string{
		"mutatingwebhookconfigurations":     {"breakwater-permission"},
		"validatingwebhookconfigurations":   {"breakwater-permission"},
		"validatingadmissionpolicies":       installed,
		"validatingadmissionpolicybindings": installed,
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
