package protection

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/breakwater-dev/breakwater/admission/admissiontest"
	"github.com/breakwater-dev/breakwater/admission/protection/budget"
	"github.com/breakwater-dev/breakwater/admission/protection/deletionflow"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

func webhookOf(t *testing.T, name string) admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	all := webhooks(t)
	i := slices.IndexFunc(all, func(w admissionregistrationv1.ValidatingWebhook) bool { return w.Name == name })
	if i < 0 {
		t.Fatalf("no webhook %s", name)
	}
	return all[i]
}

// Two webhooks for one deletion would be called in parallel, and each would count
// requests that the other denies.
func TestExactlyOneWebhookDecidesADeletionOfAPod(t *testing.T) {
	const label = v1alpha1.HasBudgetLabel
	for name, tc := range map[string]struct {
		labels labels.Set
		want   string
	}{
		"shop":                       {nil, deletionflow.Webhook},
		"guarded":                    {labels.Set{label: v1alpha1.HasBudgetValue}, budget.PodWebhook},
		"another value":              {labels.Set{label: "false"}, deletionflow.Webhook},
		"another label":              {labels.Set{"env": "prod"}, deletionflow.Webhook},
		"kube-system":                {nil, ""},
		"kube-public":                {labels.Set{label: v1alpha1.HasBudgetValue}, ""},
		"kube-node-lease":            {nil, ""},
		"knative-serving":            {nil, ""},
		"knative-eventing":           {labels.Set{label: v1alpha1.HasBudgetValue}, ""},
		"altershieldoperator-system": {labels.Set{label: v1alpha1.HasBudgetValue}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := labels.Merge(tc.labels, labels.Set{"kubernetes.io/metadata.name": name})
			var got string
			for _, w := range []string{budget.PodWebhook, deletionflow.Webhook} {
				selector, err := metav1.LabelSelectorAsSelector(webhookOf(t, w).NamespaceSelector)
				if err != nil {
					t.Fatal(err)
				}
				if selector.Matches(found) {
					got += w
				}
			}
			if got != tc.want {
				t.Errorf("called %q, want %q", got, tc.want)
			}
		})
	}
}

// Otherwise flow control would count other deletions where a budget exists.
func TestBothWebhooksMatchTheSameDeletionsOfPods(t *testing.T) {
	budgets, flows := webhookOf(t, budget.PodWebhook), webhookOf(t, deletionflow.Webhook)
	rules := func(w admissionregistrationv1.ValidatingWebhook) sets.Set[string] {
		found := sets.New[string]()
		for _, r := range w.Rules {
			for _, op := range r.Operations {
				for _, resource := range r.Resources {
					if op != admissionregistrationv1.Update {
						found.Insert(string(op) + " " + resource + " " + string(*r.Scope))
					}
				}
			}
		}
		return found
	}
	if diff := cmp.Diff(rules(flows), rules(budgets)); diff != "" {
		t.Errorf("rules (-flow control +budgets): %s", diff)
	}
	// Conditions that only one of them has must hold for every deletion.
	expressions := func(of, without admissionregistrationv1.ValidatingWebhook) (rest []admissionregistrationv1.MatchCondition) {
		return slices.DeleteFunc(slices.Clone(of.MatchConditions), func(c admissionregistrationv1.MatchCondition) bool {
			return slices.ContainsFunc(without.MatchConditions, func(d admissionregistrationv1.MatchCondition) bool { return c.Expression == d.Expression })
		})
	}
	if rest := expressions(flows, budgets); len(rest) > 0 {
		t.Errorf("only flow control has %v", rest)
	}
	completed := pod(func(_, _, s object) { s["phase"] = "Failed" })
	for _, req := range []object{
		request("DELETE", "pods", "", alice), request("DELETE", "pods", "", node), request("CREATE", "pods", "eviction", alice),
	} {
		for _, old := range []any{pod(nil), completed, nil} {
			vars := object{"request": req, "object": nil, "oldObject": old}
			if !admissiontest.Matches(t, expressions(budgets, flows), vars) {
				t.Errorf("the conditions that only budgets have exclude %v", req)
			}
		}
	}
	policies := func(w admissionregistrationv1.ValidatingWebhook) []any {
		return []any{*w.FailurePolicy, *w.MatchPolicy, *w.SideEffects, *w.TimeoutSeconds}
	}
	if diff := cmp.Diff(policies(flows), policies(budgets)); diff != "" {
		t.Errorf("(-flow control +budgets): %s", diff)
	}
}
