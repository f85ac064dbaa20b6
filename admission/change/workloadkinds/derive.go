// Package workloadkinds builds the webhooks of the workload kinds in ConfigMap
// config-workloads. They are derived from the webhooks of Deployment and inherit all
// fields that operators may tune: timeouts, failurePolicy, namespaceSelector.
//
// The webhooks of StatefulSet and DaemonSet equal derived ones, but are in the static
// manifests.
package workloadkinds

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// DecidedCondition is the name of the matchCondition of the validating webhooks that selects the
// requests which a webhook decides. Its expression depends on the kind.
const DecidedCondition = "deletes-changes-or-resumes-a-release"

// ReleaseCondition is the name of the matchCondition of the mutating webhooks that Knative Services
// extend.
const ReleaseCondition = "names-or-changes-a-release"

// DeploymentCondition is the name of the matchCondition that only the mutating webhook of
// Deployments has: it leaves those of Knative Services out. Other kinds do not have it: a user
// could make a Revision the owner of such a workload and so evade the webhook.
const DeploymentCondition = "is-not-of-a-knative-service"

// DeriveMutating returns a mutating webhook with the name and rules of a kind.
func DeriveMutating(of admissionregistrationv1.MutatingWebhook, kind workload.Kind) admissionregistrationv1.MutatingWebhook {
	derived := *of.DeepCopy()
	derived.Name = suspend.MutatingWebhook(kind)
	derived.Rules = rules(derived.Rules, kind)
	derived.MatchConditions = slices.DeleteFunc(derived.MatchConditions, func(c admissionregistrationv1.MatchCondition) bool {
		return c.Name == DeploymentCondition && kind.GroupKind() != workload.Deployment.GroupKind()
	})
	for i, c := range derived.MatchConditions {
		if c.Name == ReleaseCondition && kind.Revisions == workload.KnativeRevisions {
			derived.MatchConditions[i].Expression += trafficExpression
		}
	}
	return derived
}

// trafficExpression is true for updates of a held Knative Service that change its traffic or remove the
// hold, unless the controller makes them. version.DecideTraffic decides them.
var trafficExpression = fmt.Sprintf(`
|| (request.userInfo.username != '%[2]s'
    && oldObject.metadata.?annotations[?'%[1]s'].hasValue()
    && (object.spec.?traffic != oldObject.spec.?traffic || !object.metadata.?annotations[?'%[1]s'].hasValue()))`, v1alpha1.HoldAnnotation, v1alpha1.ControllerUser)

// DeriveValidating returns a validating webhook with the name, rules and DecidedCondition
// of a kind.
func DeriveValidating(of admissionregistrationv1.ValidatingWebhook, kind workload.Kind) admissionregistrationv1.ValidatingWebhook {
	derived := *of.DeepCopy()
	derived.Name = suspend.ValidatingWebhook(kind)
	derived.Rules = rules(derived.Rules, kind)
	is := func(c admissionregistrationv1.MatchCondition) bool { return c.Name == DecidedCondition }
	derived.MatchConditions = append(slices.DeleteFunc(derived.MatchConditions, is),
		admissionregistrationv1.MatchCondition{Name: DecidedCondition, Expression: decidedExpression(kind)})
	return derived
}

// DeriveReleaseCheck returns the release check for other kinds.
func DeriveReleaseCheck(of admissionregistrationv1.ValidatingWebhook, kinds []workload.Kind) admissionregistrationv1.ValidatingWebhook {
	derived := *of.DeepCopy()
	derived.Rules = nil
	for _, kind := range kinds {
		derived.Rules = append(derived.Rules, rules(of.DeepCopy().Rules[:1], kind)...)
	}
	return derived
}

func rules(of []admissionregistrationv1.RuleWithOperations, kind workload.Kind) []admissionregistrationv1.RuleWithOperations {
	for i := range of {
		of[i].APIGroups = []string{kind.Group}
		of[i].APIVersions = []string{kind.Version}
		of[i].Resources = []string{kind.Resource}
	}
	return of
}

// decidedExpression returns the CEL expression that is true for updates and deletions of a
// suspended workload that the webhook must decide. suspend.InputOf is the equivalent in Go.
func decidedExpression(kind workload.Kind) string {
	label := func(key string) string {
		return fmt.Sprintf("object.metadata.?labels[?'%s'] != oldObject.metadata.?labels[?'%[1]s']", key)
	}
	annotation := func(key string) string {
		return fmt.Sprintf("object.metadata.?annotations[?'%s'] != oldObject.metadata.?annotations[?'%[1]s']", key)
	}
	conditions := []string{
		"request.operation == 'DELETE'",
		"object.spec.template != oldObject.spec.template",
		// With an owner that is planted, the garbage collector would delete the workload.
		"object.metadata.?ownerReferences != oldObject.metadata.?ownerReferences",
		label(v1alpha1.SuspendLabel),
		annotation(v1alpha1.HoldAnnotation),
		// Removing the bypass annotation allows another repair.
		annotation(v1alpha1.BypassAnnotation),
	}
	if kind.Revisions == workload.KnativeRevisions {
		conditions = append(conditions, "object.spec.?traffic != oldObject.spec.?traffic")
	}
	if len(kind.PauseField.Path) > 0 {
		conditions = append(conditions, resumes(kind)...)
	}
	return strings.Join(conditions, " || ")
}

// resumes returns the CEL equivalent of the function resumes in package suspend.
func resumes(kind workload.Kind) []string {
	before, after := paused("oldObject", kind), paused("object", kind)
	conditions := []string{fmt.Sprintf("(%s && !%s)", before, after)}
	if wasOnDelete := onDelete("oldObject"); before != wasOnDelete && kind.GroupKind() != workload.Deployment.GroupKind() { // a Deployment has no updateStrategy
		conditions = append(conditions, fmt.Sprintf("(%s && !(%s || %s))", wasOnDelete, after, onDelete("object")))
	}
	return conditions
}

// paused returns the CEL equivalent of workload.Workload.PausedOrHeld.
func paused(object string, kind workload.Kind) string {
	field := object + optional(kind.PauseField.Path)
	switch value := kind.PauseField.Paused.(type) {
	case bool:
		if value {
			return field + ".orValue(false)"
		}
		return "!" + field + ".orValue(true)"
	case int64:
		return fmt.Sprintf("(%s.orValue(0) == %d)", field, value)
	default:
		return fmt.Sprintf("(%s.orValue('') == '%v')", field, value)
	}
}

// onDelete returns the CEL equivalent of workload.Workload.OnDelete.
func onDelete(object string) string {
	return "(" + object + optional([]string{"spec", "updateStrategy", "type"}) + ".orValue('') == 'OnDelete')"
}

// identifier matches field names that CEL accepts after a dot. Reserved words and
// other names are quoted.
var (
	identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	reserved   = []string{
		"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in",
		"let", "loop", "namespace", "null", "package", "return", "true", "var", "void", "while",
	}
)

// optional returns the CEL selection of an optional field. The first name of the path
// is mandatory.
func optional(path []string) string {
	selected := "." + path[0]
	for _, name := range path[1:] {
		if identifier.MatchString(name) && !slices.Contains(reserved, name) {
			selected += ".?" + name
		} else {
			selected += "[?'" + name + "']"
		}
	}
	return selected
}
