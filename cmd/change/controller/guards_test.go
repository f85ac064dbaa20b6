package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/reconciler/selfcheck/selfchecktest"
	"github.com/breakwater-dev/breakwater/test/builder"
)

const manifests = "../../../config/core/"

func TestEveryWebhookOfTheManifestsIsCheckedAsInstalled(t *testing.T) {
	want := map[string]bool{}
	for _, config := range builder.Manifests[admissionregistrationv1.ValidatingWebhookConfiguration](t, manifests+"431-webhook-validating.yaml") {
		for _, w := range config.Webhooks {
			want[config.Name+" "+w.Name] = *w.FailurePolicy == admissionregistrationv1.Ignore
		}
	}
	for _, config := range builder.Manifests[admissionregistrationv1.MutatingWebhookConfiguration](t, manifests+"430-webhook-mutating.yaml") {
		for _, w := range config.Webhooks {
			want[config.Name+" "+w.Name] = *w.FailurePolicy == admissionregistrationv1.Ignore
		}
	}
	got := map[string]bool{}
	for _, g := range planOf(nil).Webhooks {
		got[g.Configuration+" "+g.Webhook] = g.FailsOpen
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("webhooks, and whether they let pass what they cannot answer (-installed +looked after):\n%s", diff)
	}
}

func TestEveryDenyingPolicyIsCheckedAndReadable(t *testing.T) {
	plan := planOf(nil)
	selfchecktest.CheckPolicies(t, plan, manifests+"4*.yaml")
	// Each binding has the name of its policy.
	for what, got := range map[string][]string{"bindings": plan.Bindings, "policies that may be read": readable(t, "validatingadmissionpolicies")} {
		if diff := cmp.Diff(plan.Policies, got); diff != "" {
			t.Errorf("%s (-policies +these):\n%s", what, diff)
		}
	}
}

// readable are the names of the objects of a resource that the controller may read.
func readable(t *testing.T, resource string) []string {
	t.Helper()
	return selfchecktest.NamedInRules(t, manifests+"110-controller-rbac.yaml")[resource]
}

func TestOnlyNamespacesThatOptedInHaveToBeReached(t *testing.T) {
	all := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for name, value := range map[string]string{"shop": v1alpha1.NamespaceEnabled, "free": "", "no": "disabled", "kube-system": v1alpha1.NamespaceEnabled} {
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1alpha1.NamespaceLabel: value}}}
		if err := all.Add(n); err != nil {
			t.Fatal(err)
		}
	}
	found, err := optedIn(corelisters.NewNamespaceLister(all))
	if err != nil || len(found) != 1 || found[0].Name != "shop" {
		t.Errorf("%v, %v", found, err)
	}
}

func TestTheControllerMayReadTheCRDsThatItChecks(t *testing.T) {
	var checked []string
	for _, crd := range planOf(nil).CRDs {
		checked = append(checked, crd.Name)
	}
	slices.Sort(checked)
	if diff := cmp.Diff(checked, readable(t, "customresourcedefinitions")); diff != "" {
		t.Errorf("(-looked after +permitted):\n%s", diff)
	}
}

func TestTheCRDsOfTheManifestsHaveAllFields(t *testing.T) {
	selfchecktest.CheckCRDs(t, planOf(nil), manifests+"100-crd-opsconfiginfoes.yaml", manifests+"101-crd-changeworkloads.yaml",
		manifests+"102-crd-changepods.yaml", manifests+"103-crd-releasechecks.yaml", manifests+"104-crd-metricchecks.yaml")
}
