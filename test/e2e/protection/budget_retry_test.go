//go:build controlplane

package protection

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// client-go sleeps for the Retry-After of a response, up to ten times. The denial of a request that
// does not fit into the budget has none, because it would block the workers of the ReplicaSet controller.
func TestADeniedRolloutDoesNotDelayOtherReplicaSets(t *testing.T) {
	t.Parallel()
	n, other := newNamespace(t), newNamespace(t)
	undelayed := other.createAndScaleDown(t, "undelayed", 10)
	const deleteFirst = "{rollingUpdate: {maxSurge: 0, maxUnavailable: 2}}"
	n.applyWithBudget(t, deploymentManifest(20, deleteFirst), budgetManifest("minAvailable: 100%"))
	// No new pod becomes available, so all deletions of the controller are denied.
	n.run(t, "patch", "deployment", "web", "-p", `{"spec":{"template":{"spec":{"nodeSelector":{"nowhere":"true"}}}}}`)
	n.awaitDenialEvent(t)
	for i := range 3 {
		if took := other.createAndScaleDown(t, fmt.Sprintf("other-%d", i), 10); took > undelayed+15*time.Second {
			t.Errorf("ten pods were created and deleted in %s, before the denials in %s", took, undelayed)
		}
	}
	if left := strings.Fields(n.run(t, "get", "pods", "--field-selector=status.phase=Running", "-o", "name")); len(left) != 20 {
		t.Errorf("%d of 20 pods are running", len(left))
	}
}

// Denials do not wait for events. The control plane has no Broker, so no event is sent.
func TestDenialsDoNotNeedABroker(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.applyWithBudget(t, deploymentManifest(2, "{}"), budgetManifest("maxUnavailable: 0"))
	for _, name := range n.podNames(t) {
		n.checkDenied(t, budgetDenial, "delete", "pod", name)
	}
}

// awaitDenialEvent waits for an Event about a request that the budget denied.
func (n *namespace) awaitDenialEvent(t *testing.T) {
	t.Helper()
	n.await(t, "an Event reports a denial", func() error {
		if got := n.eventMessages(t, n.name, "reason=DisruptionDenied"); got == "" {
			return errors.New("no Event DisruptionDenied")
		}
		return nil
	})
}
