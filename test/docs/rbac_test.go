package docs

import (
	"slices"
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// A process that is taken over has the rights of its ServiceAccount, so no rule may grant more than
// a reader sees in the manifest.
func TestNoRoleHasWildcards(t *testing.T) {
	checked := 0
	for _, file := range tracked(t, "config/*.yaml") {
		for _, role := range rolesIn(t, file) {
			for _, rule := range role.Rules {
				checked++
				for _, values := range [][]string{rule.Verbs, rule.APIGroups, rule.Resources, rule.NonResourceURLs} {
					if slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, "*") }) {
						t.Errorf("%s: a rule of %s %s has a wildcard: %v", file, role.Kind, role.Name, values)
					}
				}
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d rules checked, want at least 100", checked)
	}
}

// rolesIn returns the Roles and ClusterRoles of a file; both have the same fields.
func rolesIn(t *testing.T, file string) []rbacv1.ClusterRole {
	t.Helper()
	return objectsIn[rbacv1.ClusterRole](t, file, "Role", "ClusterRole")
}

// objectsIn returns the objects of a manifest that have one of the kinds; without kinds, all.
func objectsIn[T any](t *testing.T, file string, kinds ...string) (all []T) {
	t.Helper()
	for text := range strings.SplitSeq(read(t, file), "\n---") {
		if len(kinds) > 0 && !slices.ContainsFunc(kinds, func(kind string) bool { return strings.Contains(text, "kind: "+kind+"\n") }) {
			continue
		}
		var object T
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, object)
	}
	return all
}

// Kubernetes writes the rules of an aggregated role: a manifest with rules, even with none, removes
// them each time it is applied, or conflicts with a server-side apply.
func TestAnAggregatedRoleHasNoRulesOfItsOwn(t *testing.T) {
	checked := 0
	for _, file := range tracked(t, "config/*.yaml") {
		for _, role := range rolesIn(t, file) {
			if role.AggregationRule == nil {
				continue
			}
			checked++
			if role.Rules != nil {
				t.Errorf("%s: ClusterRole %s has an aggregationRule and rules", file, role.Name)
			}
		}
	}
	if checked == 0 {
		t.Error("no aggregated role checked")
	}
}

// With minAvailable 1, the drain of a node never ends if a Deployment was scaled to one replica.
func TestDisruptionBudgetsDoNotBlockTheDrainOfASingleReplica(t *testing.T) {
	checked := 0
	for _, file := range tracked(t, "config/*.yaml") {
		for _, budget := range objectsIn[policyv1.PodDisruptionBudget](t, file, "PodDisruptionBudget") {
			checked++
			if budget.Spec.MaxUnavailable == nil || budget.Spec.MinAvailable != nil {
				t.Errorf("%s: PodDisruptionBudget %s has no maxUnavailable", file, budget.Name)
			}
		}
	}
	if checked < 8 {
		t.Errorf("%d budgets checked, want at least 8", checked)
	}
}
