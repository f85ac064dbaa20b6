package docs

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// A process that is taken over has the rights of its ServiceAccount, so no rule may grant more than
// a reader sees in the manifest.
func TestNoRoleHasWildcards(t *testing.T) {
	checked := 0
	for _, file := range tracked(t, "config/*.yaml") {
		for text := range strings.SplitSeq(read(t, file), "\n---") {
			var role rbacv1.ClusterRole // a Role has the same fields
			if !strings.Contains(text, "kind: Role\n") && !strings.Contains(text, "kind: ClusterRole\n") {
				continue
			}
			if err := yaml.Unmarshal([]byte(text), &role); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
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
