package selfchecktest

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/breakwater-dev/breakwater/reconciler/selfcheck"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// CheckPolicies fails unless a plan checks exactly the policies and bindings of the manifests that
// deny, and expects failurePolicy Ignore where they have it. manifests is a pattern of files, in
// which a binding precedes its policy or is in the same file.
func CheckPolicies(t *testing.T, plan selfcheck.Plan, manifests string) {
	t.Helper()
	files, err := filepath.Glob(manifests)
	if err != nil {
		t.Fatal(err)
	}
	var policies, bindings, ignoring []string
	for _, file := range files {
		for _, b := range builder.Manifests[admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, file) {
			if b.Kind == "ValidatingAdmissionPolicyBinding" && slices.Contains(b.Spec.ValidationActions, admissionregistrationv1.Deny) {
				bindings = append(bindings, b.Name)
				policies = append(policies, b.Spec.PolicyName)
			}
		}
		for _, p := range builder.Manifests[admissionregistrationv1.ValidatingAdmissionPolicy](t, file) {
			if p.Kind == "ValidatingAdmissionPolicy" && slices.Contains(policies, p.Name) && *p.Spec.FailurePolicy == admissionregistrationv1.Ignore {
				ignoring = append(ignoring, p.Name)
			}
		}
	}
	for _, c := range []struct {
		what            string
		installed, plan []string
	}{
		{"policies", slices.Compact(policies), plan.Policies},
		{"bindings", bindings, plan.Bindings},
		{"policies with failurePolicy Ignore", ignoring, plan.FailingOpen},
	} {
		if diff := cmp.Diff(c.installed, c.plan); diff != "" {
			t.Errorf("%s (-installed +looked after):\n%s", c.what, diff)
		}
	}
}

// NamedInRules returns the resourceNames of the rules of the ClusterRoles in a manifest, by resource.
func NamedInRules(t *testing.T, manifest string) map[string][]string {
	t.Helper()
	named := map[string][]string{}
	for _, role := range builder.Manifests[rbacv1.ClusterRole](t, manifest) {
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				named[resource] = append(named[resource], rule.ResourceNames...)
			}
		}
	}
	return named
}
