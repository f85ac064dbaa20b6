//go:build e2e || controlplane

package protection

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The webhook lists the pods of a protected namespace.
func TestAProtectedNamespaceIsNotDeletedWhileItHasPods(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.run(t, "label", "namespace", n.name, disableCascadingLabel+"=true")
	n.apply(t, strings.Replace(protectedDeployment, disableCascadingLabel, "test.breakwater.dev/other", 1))
	n.await(t, "three pods exist", func() error {
		if got := strings.Fields(n.list(t, "pod", metav1.ListOptions{}, itemNames)); len(got) != 3 {
			return fmt.Errorf("got %v", got)
		}
		return nil
	})
	for _, flags := range [][]string{{}, {"--cascade=foreground"}, {"--dry-run=server"}, {"--force", "--grace-period=0"}} {
		n.checkDenied(t, "3 pods would be deleted with it", append([]string{"delete", "namespace", n.name, "--wait=false"}, flags...)...)
	}
	n.await(t, "an Event reports the denial", func() error {
		if got := n.eventMessages(t, "default", "reason=CascadingDeletionDenied,involvedObject.name="+n.name); got == "" {
			return errors.New("no Event")
		}
		return nil
	})
	n.run(t, "scale", "deployment", "web", "--replicas=0")
	n.run(t, "wait", "--for=delete", "pods", "--all", "--timeout=60s")
	n.run(t, "delete", "namespace", n.name, "--timeout=90s")
}
