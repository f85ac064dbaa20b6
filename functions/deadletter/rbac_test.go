package deadletter_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// Without the right, a report about a pod of the kind would only be counted, and nobody could
// replay it.
func TestTheFunctionMayReadTheWorkloadsOfReports(t *testing.T) {
	roles := builder.Manifests[rbacv1.ClusterRole](t, "../../config/core/130-functions-rbac.yaml")
	i := slices.IndexFunc(roles, func(r rbacv1.ClusterRole) bool { return r.Kind == "ClusterRole" && r.Name == "breakwater-deadletter" })
	if i < 0 {
		t.Fatal("the function has no ClusterRole")
	}
	for _, k := range workload.BuiltIn() {
		resource := k.GroupVersionResource()
		if !slices.ContainsFunc(roles[i].Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.APIGroups, resource.Group) && slices.Contains(r.Resources, resource.Resource) && slices.Contains(r.Verbs, "get")
		}) {
			t.Errorf("it may not get %s", resource.GroupResource())
		}
	}
}
