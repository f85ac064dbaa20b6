//go:build controlplane

package protection

import (
	"fmt"
	"strings"
	"testing"
)

func TestViewEditAndAdminHaveTheRightsOfTheGuards(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	for role, tc := range map[string]struct{ may, mayNot []string }{
		"view":  {[]string{"list podunavailablebudgets"}, []string{"create podunavailablebudgets", "patch podunavailablebudgets --subresource=status", "patch poddeletionflowcontrols"}},
		"edit":  {[]string{"list podunavailablebudgets", "create podunavailablebudgets", "delete podunavailablebudgets"}, []string{"patch podunavailablebudgets --subresource=status", "update podunavailablebudgets --subresource=status"}},
		"admin": {[]string{"patch podunavailablebudgets"}, []string{"patch podunavailablebudgets --subresource=status"}},
	} {
		user := n.name + "-" + role
		n.run(t, "create", "rolebinding", role, "--clusterrole="+role, "--user="+user)
		can := func(what string) string {
			args := append([]string{"auth", "can-i", "--as=" + user}, strings.Fields(what)...)
			return strings.TrimSpace(n.try(t, args...).Stdout)
		}
		n.await(t, role+" has its rights", func() error {
			for _, what := range tc.may {
				if got := can(what); got != "yes" {
					return fmt.Errorf("%s: %s", what, got)
				}
			}
			return nil
		})
		for _, what := range tc.mayNot {
			if got := can(what); got != "no" {
				t.Errorf("%s may %s: %s", role, what, got)
			}
		}
	}
}
