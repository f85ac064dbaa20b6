//go:build controlplane

package protection

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// The webhook decides and counts without the controller, which only derives condition Open. The
// test does not run in parallel, because no budget of the control plane is computed during the
// test.
func TestFlowControlDecidesAndCountsWhileTheControllerIsDown(t *testing.T) {
	guarded, n, budgets := newNamespace(t), newNamespace(t), connect(t)
	guarded.applyWithBudget(t, deploymentManifest(4, "{}"), budgetManifest("maxUnavailable: 1"))
	awaitAllowed(t, budgets, guarded.name, 1)
	n.apply(t, deploymentOf("web", 4))
	c := newFlowControl(t, n, "")
	c.setLimit(t, 2)
	start := guarded.stopController(t)

	for range 2 {
		n.run(t, "delete", "pod", n.awaitRunning(t, "web", 4)[0])
	}
	n.checkDenied(t, "2 of 2 in 10m are deleted already", "delete", "pod", n.awaitRunning(t, "web", 4)[0])
	c.setLimit(t, 3) // effective with the next request
	n.run(t, "delete", "pod", n.awaitRunning(t, "web", 4)[0])
	n.checkDenied(t, "3 of 3 in 10m are deleted already", "delete", "pod", n.awaitRunning(t, "web", 4)[0])
	if got := c.counted(t); got != 3 {
		t.Errorf("%d deletions are counted, want 3", got)
	}
	if got := c.status(t, "deleted"); got == "3" {
		t.Error("the controller derived the status, so it was not down")
	}

	start()
	c.awaitOpen(t, "True")
	c.await(t, "the status has the deletions", func() error {
		if got := c.status(t, "deleted"); got != "3" {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	// The budgets of the next tests are computed.
	guarded.await(t, "the budget allows a deletion", func() error {
		if r := guarded.try(t, "delete", "pod", guarded.podNames(t)[0], "--dry-run=server"); r.Code != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
}

// counted returns the number of deletions that the webhook has counted.
func (c flowControl) counted(t *testing.T) int {
	t.Helper()
	sum := 0
	for count := range strings.FieldsSeq(c.status(t, "buckets[*].count")) {
		n, err := strconv.Atoi(count)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}
