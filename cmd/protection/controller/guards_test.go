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

	"github.com/breakwater-dev/breakwater/admission/protection/deletionflow"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/webhookpath"
	"github.com/breakwater-dev/breakwater/reconciler/selfcheck"
	"github.com/breakwater-dev/breakwater/reconciler/selfcheck/selfchecktest"
	"github.com/breakwater-dev/breakwater/test/builder"
)

const manifests = "../../../config/protection/"

func index(t *testing.T, objects ...any) cache.Indexer {
	t.Helper()
	all := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, o := range objects {
		if err := all.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func newPlan(t *testing.T, namespaces, budgets, flows []any) selfcheck.Plan {
	t.Helper()
	return planOf(corelisters.NewNamespaceLister(index(t, namespaces...)), listers.NewPodUnavailableBudgetLister(index(t, budgets...)),
		listers.NewPodDeletionFlowControlLister(index(t, flows...)))
}

func TestEveryWebhookOfTheManifestsIsCheckedAsInstalled(t *testing.T) {
	want := map[string]bool{}
	added, err := deletionflow.Webhooks(webhookpath.Access{})
	if err != nil {
		t.Fatal(err)
	}
	for _, config := range builder.Manifests[admissionregistrationv1.ValidatingWebhookConfiguration](t, manifests+"430-webhook-validating.yaml") {
		for _, w := range config.Webhooks {
			want[config.Name+" "+w.Name] = *w.FailurePolicy == admissionregistrationv1.Ignore
		}
	}
	for _, w := range added {
		want[deletionflow.Configuration+" "+w.Name] = *w.FailurePolicy == admissionregistrationv1.Ignore
	}
	got := map[string]bool{}
	for _, g := range newPlan(t, nil, nil, nil).Webhooks {
		got[g.Configuration+" "+g.Webhook] = g.FailsOpen
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("webhooks, and whether they let pass what they cannot answer (-installed +looked after):\n%s", diff)
	}
}

func TestEveryDenyingPolicyIsCheckedAndReadable(t *testing.T) {
	plan := newPlan(t, nil, nil, nil)
	selfchecktest.CheckPolicies(t, plan, manifests+"2*.yaml")
	named := selfchecktest.NamedInRules(t, manifests+"110-controller-rbac.yaml")
	for resource, want := range map[string][]string{
		"validatingadmissionpolicies": plan.Policies, "validatingadmissionpolicybindings": plan.Bindings,
		"validatingwebhookconfigurations": {"breakwater-protection", "breakwater-deletionflow"},
	} {
		if diff := cmp.Diff(want, named[resource]); diff != "" {
			t.Errorf("%s (-looked after +permitted):\n%s", resource, diff)
		}
	}
}

func TestWhichNamespacesHaveToBeReached(t *testing.T) {
	namespace := func(name string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	ending := namespace("ending")
	ending.DeletionTimestamp = new(metav1.Now())
	budget := func(ns string) *v1alpha1.PodUnavailableBudget {
		return &v1alpha1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}}
	}
	marked := namespace("marked") // the label outlives the last budget
	marked.Labels = map[string]string{v1alpha1.HasBudgetLabel: v1alpha1.HasBudgetValue}
	namespaces := []any{namespace("shop"), namespace("free"), namespace("kube-system"), ending, marked}
	flow := []any{&v1alpha1.PodDeletionFlowControl{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}}}
	budgets := []any{budget("shop"), budget("kube-system"), budget("ending"), budget("gone")}
	for _, tc := range []struct {
		webhook string
		flows   []any
		want    []string
		unasked bool
	}{
		{webhook: "vpodbudget.kb.io", want: []string{"shop"}},
		{webhook: "vownerbudget.kb.io", want: []string{"shop"}},
		{webhook: "vcascade.kb.io"},
		{webhook: "vdeletionflow.kb.io", unasked: true},
		{webhook: "vnamespacedeletionflow.kb.io", unasked: true},
		// One of the two webhooks for pods must be called for every namespace. For shop,
		// which has no label yet, both are listed.
		{webhook: "vpodbudget.kb.io", flows: flow, want: []string{"marked", "shop"}},
		{webhook: "vdeletionflow.kb.io", flows: flow, want: []string{"free", "shop"}},
		{webhook: "vownerbudget.kb.io", flows: flow, want: []string{"shop"}},
		{webhook: "vnamespacedeletionflow.kb.io", flows: flow, want: []string{"free", "marked", "shop"}},
	} {
		for _, g := range newPlan(t, namespaces, budgets, tc.flows).Webhooks {
			if g.Webhook != tc.webhook {
				continue
			}
			if g.Wanted != nil {
				if wanted, err := g.Wanted(); err != nil || wanted == tc.unasked {
					t.Errorf("%s is wanted: %v, %v", g.Webhook, wanted, err)
				}
			}
			if g.Namespaces == nil || tc.unasked {
				continue
			}
			found, err := g.Namespaces()
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, n := range found {
				names = append(names, n.Name)
			}
			slices.Sort(names)
			if diff := cmp.Diff(tc.want, names); diff != "" {
				t.Errorf("%s: %s", g.Webhook, diff)
			}
		}
	}
}

func TestTheCRDsOfTheManifestsHaveAllFields(t *testing.T) {
	selfchecktest.CheckCRDs(t, newPlan(t, nil, nil, nil), manifests+"100-crd-podunavailablebudgets.yaml", manifests+"101-crd-poddeletionflowcontrols.yaml")
}
