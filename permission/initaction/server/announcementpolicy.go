package server

import (
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/permission/settings"
)

// announcementPolicy is the name of the policy that protects the announced addresses, and of its
// binding (config/samples/announced-address.yaml).
const announcementPolicy = "breakwater-permission-announced-address"

// announcementRule admits a request that leaves the annotation as it is, and each one of the writer. A
// created object, also a Binding, has no former annotation.
const announcementRule = "object.metadata.?annotations[?variables.annotation] ==" +
	" (request.operation == 'UPDATE' ? oldObject.metadata.?annotations[?variables.annotation] : optional.none())" +
	" || request.userInfo.username == variables.writer"

// announcementPolicySpec returns the spec of the policy, without messages, as the API server
// stores it with its defaults. The settings need no escaping: they have no quotes and no backslashes.
func announcementPolicySpec(a settings.AnnouncedAddress) admissionregistrationv1.ValidatingAdmissionPolicySpec {
	rule := func(resources []string, operations ...admissionregistrationv1.OperationType) admissionregistrationv1.NamedRuleWithOperations {
		return admissionregistrationv1.NamedRuleWithOperations{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: operations,
			Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: resources,
				Scope: new(admissionregistrationv1.NamespacedScope)},
		}}
	}
	return admissionregistrationv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: new(admissionregistrationv1.Fail),
		MatchConstraints: &admissionregistrationv1.MatchResources{
			MatchPolicy: new(admissionregistrationv1.Equivalent), NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{
				rule([]string{"pods", "pods/status", "pods/ephemeralcontainers", "pods/resize"}, admissionregistrationv1.Create, admissionregistrationv1.Update),
				rule([]string{"pods/binding", "bindings"}, admissionregistrationv1.Create),
			},
		},
		Variables: []admissionregistrationv1.Variable{
			{Name: "annotation", Expression: "'" + a.Annotation + "'"},
			{Name: "writer", Expression: "'" + a.Writer + "'"},
		},
		Validations: []admissionregistrationv1.Validation{{Expression: announcementRule}},
	}
}

// announcementBindingSpec returns the spec of the binding.
func announcementBindingSpec() admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec {
	return admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: announcementPolicy, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}
}

// withoutMessages returns the spec without what the API server answers when it denies a request.
func withoutMessages(s admissionregistrationv1.ValidatingAdmissionPolicySpec) admissionregistrationv1.ValidatingAdmissionPolicySpec {
	s.Validations = slices.Clone(s.Validations)
	for i := range s.Validations {
		s.Validations[i].Message, s.Validations[i].MessageExpression, s.Validations[i].Reason = "", "", nil
	}
	return s
}
