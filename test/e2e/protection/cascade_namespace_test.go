//go:build e2e || controlplane

package protection

import (
	"fmt"
	"strings"
	"testing"
)

// The webhook lists the pods of a protected namespace.
func TestAProtectedNamespaceIsNotDeletedWhileItHasPods(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.run(t, "label", "namespace", n.name, disableCascadingLabel+"=true")
	n.apply(t, strings.Replace(protectedDeployment, disableCascadingLabel, "test.breakwater.dev/other", 1))
	n.await(t, "three pods exist", func() error {
		if r := n.try(t, "get", "pods", "-o", "name"); strings.Count(r.Stdout, "pod/") != 3 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	for _, flags := range [][]string{{}, {"--cascade=foreground"}, {"--dry-run=server"}, {"--force", "--grace-period=0"}} {
		n.checkDenied(t, "3 pods would be deleted with it", append([]string{"delete", "namespace", n.name, "--wait=false"}, flags...)...)
	}
	n.await(t, "an Event reports the denial", func() error {
		r := n.try(t, "get", "events", "-n", "default", "--field-selector", "reason=CascadingDeletionDenied,involvedObject.name="+n.name, "-o", "name")
		if r.Code != 0 || r.Stdout == "" {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	n.run(t, "scale", "deployment", "web", "--replicas=0")
	n.run(t, "wait", "--for=delete", "pods", "--all", "--timeout=60s")
	n.run(t, "delete", "namespace", n.name, "--timeout=90s")
}
