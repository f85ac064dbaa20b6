package admission_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// kubectl apply --force and force of Flux delete an object whose update is answered 409 or 422, and create it again. A policy
// answers 422 unless its reason says otherwise.
func TestNoPolicyDeniesAnObjectOfAUserWith409Or422(t *testing.T) {
	files, err := filepath.Glob("../config/*/[2-4]*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "../config/samples/announced-address.yaml")
	checked := 0
	for _, file := range files {
		bindings := builder.Manifests[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, file)
		denies := func(b admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool {
			return slices.Contains(b.Spec.ValidationActions, admissionregistrationv1.Deny)
		}
		for _, p := range builder.Manifests[admissionregistrationv1.ValidatingAdmissionPolicy](t, file) {
			if p.Kind != "ValidatingAdmissionPolicy" || ofController(p.Name) || !matchesUsers(p.Spec) ||
				!slices.ContainsFunc(bindings, func(b admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool {
					return b.Spec.PolicyName == p.Name && denies(b)
				}) {
				continue
			}
			checked++
			for _, v := range p.Spec.Validations {
				if v.Reason == nil || *v.Reason != metav1.StatusReasonForbidden {
					t.Errorf("%s: %s denies with another reason than Forbidden: %s", file, p.Name, v.Expression)
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d policies were checked", checked)
	}
}

// matchesUsers reports whether the policy matches writes of users to objects that are not of Breakwater's kinds.
func matchesUsers(p admissionregistrationv1.ValidatingAdmissionPolicySpec) bool {
	return slices.ContainsFunc(p.MatchConstraints.ResourceRules, func(r admissionregistrationv1.NamedRuleWithOperations) bool {
		return slices.ContainsFunc(r.APIGroups, func(group string) bool { return group != v1alpha1.GroupName && group != judgev1alpha1.GroupName })
	})
}

// ofController reports whether the policy matches writes of Breakwater's own accounts only.
func ofController(policy string) bool {
	return policy == "breakwater-openapi-writes-no-spec" || strings.HasPrefix(policy, "breakwater-controller-")
}
