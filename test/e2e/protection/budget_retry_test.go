//go:build controlplane

package protection

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// client-go sleeps for the Retry-After of a response, up to ten times. A denial
// has none, because it would block the workers of the ReplicaSet controller.
func TestADeniedRolloutDoesNotDelayOtherReplicaSets(t *testing.T) {
	t.Parallel()
	n, other := newNamespace(t), newNamespace(t)
	const deleteFirst = "{rollingUpdate: {maxSurge: 0, maxUnavailable: 2}}"
	n.applyWithBudget(t, deploymentManifest(20, deleteFirst), budgetManifest("minAvailable: 100%"))
	// No new pod becomes available, so all deletions of the controller are
	// denied.
	n.run(t, "patch", "deployment", "web", "-p", `{"spec":{"template":{"spec":{"nodeSelector":{"nowhere":"true"}}}}}`)
	n.await(t, "a deletion of the controller is denied", func() error {
		if got := n.run(t, "get", "events", "--field-selector=reason=DisruptionDenied", "-o", "name"); got == "" {
			return errors.New("no Event DisruptionDenied")
		}
		return nil
	})
	for range 3 {
		start := time.Now()
		other.apply(t, deploymentManifest(10, "{}"))
		other.run(t, "rollout", "status", "deployment", "web", "--timeout=60s")
		other.run(t, "delete", "deployment", "web", "--cascade=foreground", "--timeout=60s")
		if took := time.Since(start); took > 15*time.Second {
			t.Errorf("ten pods were created and deleted in %s", took)
		}
	}
	if left := strings.Fields(n.run(t, "get", "pods", "--field-selector=status.phase=Running", "-o", "name")); len(left) != 20 {
		t.Errorf("%d of 20 pods are running", len(left))
	}
}
