//go:build controlplane

package protection

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// controllerLease is the Lease of the controller that computes budgets.
const controllerLease = "lease/protection-controller.00-of-01"

// The last numbers of a controller that lost its Lease allow the deletion of a pod,
// although another pod has become unavailable since. The test does not run in parallel,
// because no budget of the control plane is computed during the test.
func TestNumbersThatNobodyComputesAllowNothing(t *testing.T) {
	n, c := newNamespace(t), connect(t)
	n.applyWithBudget(t, deploymentManifest(4, "{}"), budgetManifest("maxUnavailable: 1"))
	awaitAllowed(t, c, n.name, 1)
	pods := n.podNames(t)
	start := n.stopController(t)
	n.setReady(t, pods[1], false)
	awaitAllowed(t, c, n.name, 1) // the number is wrong, and no controller corrects it
	if r := n.try(t, "delete", "pod", pods[0], "--wait=false"); r.Code == 0 {
		t.Errorf("two of four pods are unavailable under a budget of one:\n%s", r)
	}

	start()
	awaitAllowed(t, c, n.name, 0)
	n.setReady(t, pods[1], true)
	awaitAllowed(t, c, n.name, 1)
	n.await(t, "the deletion is allowed", func() error {
		if r := n.try(t, "delete", "pod", pods[0], "--wait=false"); r.Code != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
}

// stopController takes the Lease of the controller, until start is called or the test ends.
// It returns when the webhook denies what the budget of the namespace allowed. By then the
// controller has also noticed that it is no leader.
func (n *namespace) stopController(t *testing.T) (start func()) {
	t.Helper()
	deletes := []string{"delete", "pod", n.podNames(t)[0], "--dry-run=server"}
	n.run(t, deletes...)
	n.cleanup(t, append(slices.Clone(system), "delete", controllerLease, "--ignore-not-found")...)
	n.run(t, append(slices.Clone(system), "patch", controllerLease, "--type=merge", "-p", fmt.Sprintf(
		`{"spec":{"holderIdentity":"nobody","leaseDurationSeconds":3600,"renewTime":%q}}`, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")))...)
	var last string
	if err := wait.PollUntilContextTimeout(t.Context(), time.Second, 3*shortTimeout, true, func(context.Context) (bool, error) {
		last = n.try(t, deletes...).String()
		return strings.Contains(last, "may be old (Lease protection-controller.00-of-01 was not renewed for"), nil
	}); err != nil {
		t.Fatalf("the deletion is not denied while no controller computes budgets:\n%s", last)
	}
	return func() {
		t.Helper()
		n.run(t, append(slices.Clone(system), "delete", controllerLease)...)
	}
}

// setReady sets condition Ready of a simulated pod.
func (n *namespace) setReady(t *testing.T, pod string, ready bool) {
	t.Helper()
	status := map[bool]string{true: "True", false: "False"}[ready]
	n.run(t, "patch", "pod", pod, "--subresource=status", "-p", fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, status))
}
