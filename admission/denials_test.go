package admission_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// kubectl apply --force and force of Flux delete an object whose update is answered 409 or 422, and create
// it again. A policy answers 422 unless its reason says otherwise.
func TestNoPolicyDeniesAnObjectOfAUserWith409Or422(t *testing.T) {
	files, err := filepath.Glob("../config/*/[2-4]*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "../config/samples/announced-address.yaml")
	checked := 0
	for _, file := range files {
		denied := sets.New[string]() // the policies of the file that deny
		for _, b := range builder.Manifests[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, file) {
			if slices.Contains(b.Spec.ValidationActions, admissionregistrationv1.Deny) {
				denied.Insert(b.Spec.PolicyName)
			}
		}
		for _, p := range builder.Manifests[admissionregistrationv1.ValidatingAdmissionPolicy](t, file) {
			if p.Kind != "ValidatingAdmissionPolicy" || ofController(p.Name) || !matchesOtherKinds(p.Spec) || !denied.Has(p.Name) {
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

// matchesOtherKinds reports whether the policy matches kinds that are not Breakwater's.
func matchesOtherKinds(p admissionregistrationv1.ValidatingAdmissionPolicySpec) bool {
	return slices.ContainsFunc(p.MatchConstraints.ResourceRules, func(r admissionregistrationv1.NamedRuleWithOperations) bool {
		return slices.ContainsFunc(r.APIGroups, func(group string) bool { return group != v1alpha1.GroupName && group != judgev1alpha1.GroupName })
	})
}

// ofController reports whether the policy matches writes of Breakwater's own accounts only.
func ofController(policy string) bool {
	return policy == "breakwater-openapi-writes-no-spec" || strings.HasPrefix(policy, "breakwater-controller-")
}
