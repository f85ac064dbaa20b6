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

// While no controller computes budgets, the webhooks decide. The test does not run in parallel,
// because the budgets of the whole control plane are affected.
func TestWhileNoControllerRuns(t *testing.T) {
	numbers, flow := newOldNumbers(t), newFlowWithoutController(t)
	start := numbers.stopController(t)
	t.Run("numbers that nobody computes allow nothing", numbers.checkDenied)
	t.Run("flow control decides and counts", flow.check)
	start()
	t.Run("the numbers are computed again", numbers.checkComputed)
	t.Run("flow control reports what it counted", flow.checkReported)
}

// oldNumbers are the last numbers of a controller that lost its Lease. They allow the deletion of
// a pod, although another pod has become unavailable since.
type oldNumbers struct {
	*namespace
	clients clients
	pods    []string
}

func newOldNumbers(t *testing.T) oldNumbers {
	t.Helper()
	n, c := newNamespace(t), connect(t)
	n.applyWithBudget(t, deploymentManifest(4, "{}"), budgetManifest("maxUnavailable: 1"))
	awaitAllowed(t, c, n.name, 1)
	return oldNumbers{n, c, n.podNames(t)}
}

func (o oldNumbers) checkDenied(t *testing.T) {
	o.setReady(t, o.pods[1], false)
	awaitAllowed(t, o.clients, o.name, 1) // the number is wrong, and no controller corrects it
	if r := o.try(t, "delete", "pod", o.pods[0], "--wait=false"); r.Code == 0 {
		t.Errorf("two of four pods are unavailable under a budget of one:\n%s", r)
	}
}

func (o oldNumbers) checkComputed(t *testing.T) {
	awaitAllowed(t, o.clients, o.name, 0)
	o.setReady(t, o.pods[1], true)
	awaitAllowed(t, o.clients, o.name, 1)
	o.await(t, "the deletion is allowed", func() error {
		if r := o.try(t, "delete", "pod", o.pods[0], "--wait=false"); r.Code != 0 {
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
