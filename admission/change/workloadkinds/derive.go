// Package workloadkinds gives the kinds of workloads that ConfigMap config-workloads
// names their webhooks. They are twins of those of Deployments, and take after
// them in everything that a person may tune: timeouts, failurePolicy,
// namespaces.
//
// StatefulSets and DaemonSets have such twins too, in the static manifests.
package workloadkinds

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/change/suspend"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// HoldCondition is the name of the one matchCondition that differs between kinds.
const HoldCondition = "releases-or-ends-the-hold"

// DeriveMutating returns the twin of a mutating webhook for another kind.
func DeriveMutating(of admissionregistrationv1.MutatingWebhook, kind workload.Kind) admissionregistrationv1.MutatingWebhook {
	twin := *of.DeepCopy()
	twin.Name = suspend.MutatingWebhook(kind)
	twin.ClientConfig = client(twin.ClientConfig, twin.Name)
	twin.Rules = rules(twin.Rules, kind)
	return twin
}

// DeriveValidating returns the twin of a validating webhook for another kind.
func DeriveValidating(of admissionregistrationv1.ValidatingWebhook, kind workload.Kind) admissionregistrationv1.ValidatingWebhook {
	twin := *of.DeepCopy()
	twin.Name = suspend.ValidatingWebhook(kind)
	twin.ClientConfig = client(twin.ClientConfig, twin.Name)
	twin.Rules = rules(twin.Rules, kind)
	is := func(c admissionregistrationv1.MatchCondition) bool { return c.Name == HoldCondition }
	twin.MatchConditions = append(slices.DeleteFunc(twin.MatchConditions, is),
		admissionregistrationv1.MatchCondition{Name: HoldCondition, Expression: endsHold(kind)})
	return twin
}

// DeriveReleaseCheck returns the twin of the release check for other kinds. Its handler
// is the same: it knows the kinds that are in force.
func DeriveReleaseCheck(of admissionregistrationv1.ValidatingWebhook, kinds []workload.Kind) admissionregistrationv1.ValidatingWebhook {
	twin := *of.DeepCopy()
	twin.Rules = nil
	for _, kind := range kinds {
		twin.Rules = append(twin.Rules, rules(of.DeepCopy().Rules, kind)...)
	}
	return twin
}

func client(of admissionregistrationv1.WebhookClientConfig, name string) admissionregistrationv1.WebhookClientConfig {
	if of.Service != nil {
		of.Service.Path = ptr.To(admission.PathPrefix + name)
	}
	return of
}

func rules(of []admissionregistrationv1.RuleWithOperations, kind workload.Kind) []admissionregistrationv1.RuleWithOperations {
	for i := range of {
		of[i].APIGroups = []string{kind.Group}
		of[i].APIVersions = []string{kind.Version}
		of[i].Resources = []string{kind.Resource}
	}
	return of
}

// endsHold is the CEL expression that holds for an update of a suspended
// workload that the webhook has to decide about. suspend.Facts says the same
// in Go.
func endsHold(kind workload.Kind) string {
	label := func(key string) string {
		return fmt.Sprintf("object.metadata.?labels[?'%s'] != oldObject.metadata.?labels[?'%[1]s']", key)
	}
	annotation := func(key string) string {
		return fmt.Sprintf("object.metadata.?annotations[?'%s'] != oldObject.metadata.?annotations[?'%[1]s']", key)
	}
	return strings.Join([]string{
		"object.spec.template != oldObject.spec.template",
		label(v1alpha1.SuspendLabel),
		annotation(v1alpha1.HoldAnnotation),
		// The end of this record allows another repair.
		fmt.Sprintf("(oldObject.metadata.?annotations[?'%s'].hasValue() && !object.metadata.?annotations[?'%[1]s'].hasValue())", v1alpha1.BypassAnnotation),
		fmt.Sprintf("(%s && !%s)", stopped("oldObject", kind), stopped("object", kind)),
	}, " || ")
}

// stopped is what workload.Workload.Stopped says.
func stopped(object string, kind workload.Kind) string {
	held := object + optional(kind.Hold.Path)
	switch value := kind.Hold.Held.(type) {
	case bool:
		held += fmt.Sprintf(".orValue(%t)", !value)
		if !value {
			held = "!" + held
		}
	case int64:
		held += fmt.Sprintf(".orValue(0) == %d", value)
	default:
		held += fmt.Sprintf(".orValue('') == '%v'", value)
	}
	onDelete := object + optional([]string{"spec", "updateStrategy", "type"}) + ".orValue('') == 'OnDelete'"
	switch {
	case held == onDelete:
		return "(" + held + ")"
	case kind.GroupKind() == workload.Deployment.GroupKind():
		return held // it has no updateStrategy
	default:
		return "(" + held + " || " + onDelete + ")"
	}
}

// identifier is what CEL takes after a dot; its reserved words are quoted like
// all else.
var (
	identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	reserved   = []string{
		"as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in",
		"let", "loop", "namespace", "null", "package", "return", "true", "var", "void", "while",
	}
)

// optional selects a field that need not be there. The first name is.
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
