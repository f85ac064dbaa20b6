package diagnosis

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

const (
	// openKruise is the configuration in which OpenKruise's manager writes its webhooks.
	openKruise = "kruise-validating-webhook-configuration"
	// openKruiseWebhook is its webhook for budgets; Breakwater's has the same name. It
	// denies each budget while the feature gates of OpenKruise's budgets are off, as they
	// are beside Breakwater.
	openKruiseWebhook = "vpodunavailablebudget.kb.io"
	// openKruiseTemplate is the annotation from which OpenKruise restores its webhooks.
	openKruiseTemplate = "template"
)

// ExamineBudgetWebhooks checks which webhooks the API server calls for budgets beside
// Breakwater's. OpenKruise's webhooks for pods are not reported: they have the same
// rules, whether its budgets are on or off, and its WorkloadSpreads need them.
func ExamineBudgetWebhooks(configurations []admissionregistrationv1.ValidatingWebhookConfiguration) Check {
	var denying, others []string
	for _, c := range configurations {
		if isOurs(c.Name) {
			continue
		}
		called := slices.DeleteFunc(slices.Clone(c.Webhooks), func(w admissionregistrationv1.ValidatingWebhook) bool { return !forBudgets(w.Rules) })
		for _, w := range called {
			if c.Name == openKruise && w.Name == openKruiseWebhook {
				denying = append(denying, fmt.Sprintf("OpenKruise's webhook %s denies every budget while the feature gates of its budgets are off", w.Name))
			} else {
				others = append(others, fmt.Sprintf("webhook %s (%s) may deny budgets", w.Name, c.Name))
			}
		}
		if c.Name == openKruise && len(denying) == 0 && restoresBudgetWebhook(c) {
			denying = append(denying, fmt.Sprintf("OpenKruise restores its webhook %s from annotation %s", openKruiseWebhook, openKruiseTemplate))
		}
	}
	check := Check{"protection: webhooks of others", ResultOK, "none is called for budgets", ""}
	switch all := slices.Concat(denying, others); {
	case len(denying) > 0:
		check.Result, check.Message = ResultFail, strings.Join(all, "; ")
		check.Fix = fmt.Sprintf("delete it from the webhooks and annotation %s of ValidatingWebhookConfiguration %s: docs/protection/openkruise.md", openKruiseTemplate, openKruise)
	case len(others) > 0:
		check.Result, check.Message = ResultInfo, strings.Join(all, "; ")
	}
	return check
}

func isOurs(configuration string) bool {
	return slices.ContainsFunc(Parts(), func(p Part) bool { return slices.Contains(p.Configurations, configuration) })
}

// forBudgets reports whether a rule names the group of budgets and matches writes of
// them. A rule for all groups is that of a policy engine, which is not about budgets.
func forBudgets(rules []admissionregistrationv1.RuleWithOperations) bool {
	return slices.ContainsFunc(rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return slices.Contains(r.APIGroups, "policy.kruise.io") &&
			slices.ContainsFunc(r.Operations, func(o admissionregistrationv1.OperationType) bool {
				return o == admissionregistrationv1.Create || o == admissionregistrationv1.Update || o == admissionregistrationv1.OperationAll
			}) &&
			slices.ContainsFunc(r.Resources, func(resource string) bool {
				name, _, _ := strings.Cut(resource, "/")
				return name == "podunavailablebudgets" || name == "*"
			})
	})
}

// restoresBudgetWebhook reports whether OpenKruise would add its webhook for budgets to
// a configuration again. OpenKruise does not restore from an unreadable annotation.
func restoresBudgetWebhook(c admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	var template []admissionregistrationv1.ValidatingWebhook
	if err := json.Unmarshal([]byte(c.Annotations[openKruiseTemplate]), &template); err != nil {
		return false
	}
	return slices.ContainsFunc(template, func(w admissionregistrationv1.ValidatingWebhook) bool {
		return w.Name == openKruiseWebhook && forBudgets(w.Rules)
	})
}
