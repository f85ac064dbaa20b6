package deadletter_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// rules returns the rules of the ClusterRoles that are bound to the function, with those that
// Kubernetes aggregates from other ClusterRoles.
func rules(t *testing.T, others []rbacv1.ClusterRole) []rbacv1.PolicyRule {
	t.Helper()
	const file = "../../config/core/130-functions-rbac.yaml"
	roles := builder.Manifests[rbacv1.ClusterRole](t, file)
	var out []rbacv1.PolicyRule
	for _, b := range builder.Manifests[rbacv1.ClusterRoleBinding](t, file) {
		bound := slices.ContainsFunc(b.Subjects, func(s rbacv1.Subject) bool { return s.Name == "deadletter" })
		i := slices.IndexFunc(roles, func(r rbacv1.ClusterRole) bool { return r.Kind == b.RoleRef.Kind && r.Name == b.RoleRef.Name })
		if b.Kind != "ClusterRoleBinding" || !bound || i < 0 {
			continue
		}
		out = append(out, roles[i].Rules...)
		if roles[i].AggregationRule == nil {
			continue
		}
		for _, s := range roles[i].AggregationRule.ClusterRoleSelectors {
			selector, err := metav1.LabelSelectorAsSelector(&s)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range others {
				if selector.Matches(labels.Set(o.Labels)) {
					out = append(out, o.Rules...)
				}
			}
		}
	}
	return out
}

// Without the right, a report about a pod of the kind would only be counted, and nobody could
// replay it.
func TestTheFunctionMayReadTheWorkloadsOfReports(t *testing.T) {
	granted := rules(t, builder.Manifests[rbacv1.ClusterRole](t, "../../config/samples/clonesets-rbac.yaml"))
	kinds := []schema.GroupResource{{Group: "apps.kruise.io", Resource: "clonesets"}}
	for _, k := range workload.BuiltIn() {
		kinds = append(kinds, k.GroupVersionResource().GroupResource())
	}
	for _, kind := range kinds {
		var verbs []string
		for _, r := range granted {
			if slices.Contains(r.APIGroups, kind.Group) && slices.Contains(r.Resources, kind.Resource) {
				verbs = append(verbs, r.Verbs...)
			}
		}
		if !slices.Equal(verbs, []string{"get"}) {
			t.Errorf("verbs of %s are %v, want get", kind, verbs)
		}
	}
}
