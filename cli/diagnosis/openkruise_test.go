package diagnosis_test

import (
	"encoding/json"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/cli/diagnosis"
)

type configurations = []admissionregistrationv1.ValidatingWebhookConfiguration

const kruise, budgets, create = "kruise-validating-webhook-configuration", "podunavailablebudgets", admissionregistrationv1.Create

func configuration(name string, webhooks ...admissionregistrationv1.ValidatingWebhook) admissionregistrationv1.ValidatingWebhookConfiguration {
	return admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: webhooks}
}

func webhook(name, group, resource string, operation admissionregistrationv1.OperationType) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{Name: name, Rules: []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{operation},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, Resources: []string{resource}},
	}}}
}

// openKruiseWebhook is OpenKruise's webhook for budgets.
func openKruiseWebhook() admissionregistrationv1.ValidatingWebhook {
	return webhook("vpodunavailablebudget.kb.io", "policy.kruise.io", budgets, create)
}

func TestDoctorNamesTheWebhooksOfOthersThatAreCalledForBudgets(t *testing.T) {
	template := func(text string, webhooks ...admissionregistrationv1.ValidatingWebhook) admissionregistrationv1.ValidatingWebhookConfiguration {
		c := configuration(kruise, webhooks...)
		c.Annotations = map[string]string{"template": text}
		return c
	}
	policies := func(group, resource string, operation admissionregistrationv1.OperationType) admissionregistrationv1.ValidatingWebhookConfiguration {
		return configuration("policies", webhook("b.example.com", group, resource, operation))
	}
	raw, err := json.Marshal([]admissionregistrationv1.ValidatingWebhook{openKruiseWebhook()})
	if err != nil {
		t.Fatal(err)
	}
	const (
		none     = "none is called for budgets"
		denies   = "OpenKruise's webhook vpodunavailablebudget.kb.io denies every budget while the feature gates of its budgets are off"
		restores = "OpenKruise restores its webhook vpodunavailablebudget.kb.io from annotation template"
		may      = "webhook b.example.com (policies) may deny budgets"
	)
	for name, tc := range map[string]struct {
		configurations configurations
		result         diagnosis.Result
		message        string
	}{
		"no webhook":                                        {nil, diagnosis.ResultOK, none},
		"ours, which has the same name":                     {configurations{configuration("breakwater-protection", openKruiseWebhook())}, diagnosis.ResultOK, none},
		"OpenKruise's":                                      {configurations{configuration(kruise, openKruiseWebhook())}, diagnosis.ResultFail, denies},
		"OpenKruise's, and it would be restored":            {configurations{template(string(raw), openKruiseWebhook())}, diagnosis.ResultFail, denies},
		"OpenKruise's was deleted, but it will be restored": {configurations{template(string(raw))}, diagnosis.ResultFail, restores},
		"OpenKruise's was deleted from the annotation, too": {configurations{template("[]")}, diagnosis.ResultOK, none},
		"an annotation that is no list of webhooks":         {configurations{template("blue")}, diagnosis.ResultOK, none},
		"OpenKruise's for pods and evictions": {configurations{configuration(kruise,
			webhook("vpod.kb.io", "", "pods", admissionregistrationv1.Delete), webhook("vpodeviction.kb.io", "", "pods/eviction", create))}, diagnosis.ResultOK, none},
		"a copy of ours":                     {configurations{configuration("copy", openKruiseWebhook())}, diagnosis.ResultInfo, "webhook vpodunavailablebudget.kb.io (copy) may deny budgets"},
		"one of others":                      {configurations{policies("policy.kruise.io", budgets, create)}, diagnosis.ResultInfo, may},
		"one of others, for all operations":  {configurations{policies("policy.kruise.io", budgets, "*")}, diagnosis.ResultInfo, may},
		"one of others, for the whole group": {configurations{policies("policy.kruise.io", "*/*", admissionregistrationv1.Update)}, diagnosis.ResultInfo, may},
		"one of others, for the status":      {configurations{policies("policy.kruise.io", budgets+"/status", admissionregistrationv1.Update)}, diagnosis.ResultInfo, may},
		"one of others, for deletions":       {configurations{policies("policy.kruise.io", budgets, admissionregistrationv1.Delete)}, diagnosis.ResultOK, none},
		"one of others, for all groups":      {configurations{policies("*", "*", "*")}, diagnosis.ResultOK, none},
		"OpenKruise's and one of others": {configurations{
			policies("policy.kruise.io", budgets, create), configuration(kruise, openKruiseWebhook()),
		}, diagnosis.ResultFail, denies + "; " + may},
	} {
		t.Run(name, func(t *testing.T) {
			got := diagnosis.ExamineBudgetWebhooks(tc.configurations)
			if got.Result != tc.result || got.Message != tc.message {
				t.Errorf("got %s %q, want %s %q", got.Result, got.Message, tc.result, tc.message)
			}
			if fails := got.Result == diagnosis.ResultFail; fails != strings.Contains(got.Fix, "delete it from the webhooks and annotation template of ValidatingWebhookConfiguration "+kruise) {
				t.Errorf("the fix is %q", got.Fix)
			}
		})
	}
}
