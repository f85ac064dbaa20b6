//go:build controlplane

package protection

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// flowWithoutController is a flow control that the webhook decides and counts without the
// controller, which only derives condition Open.
type flowWithoutController struct{ flowControl }

func newFlowWithoutController(t *testing.T) flowWithoutController {
	t.Helper()
	n := newNamespace(t)
	n.apply(t, deploymentOf("web", 4))
	c := newFlowControl(t, n, "")
	c.setLimit(t, 2)
	return flowWithoutController{c}
}

func (c flowWithoutController) check(t *testing.T) {
	for range 2 {
		c.run(t, "delete", "pod", c.awaitRunning(t, "web", 4)[0])
	}
	c.checkDenied(t, "2 deletions were counted in 10m (limit 2)", "delete", "pod", c.awaitRunning(t, "web", 4)[0])
	c.setLimit(t, 3) // effective with the next request
	c.run(t, "delete", "pod", c.awaitRunning(t, "web", 4)[0])
	c.checkDenied(t, "3 deletions were counted in 10m (limit 3)", "delete", "pod", c.awaitRunning(t, "web", 4)[0])
	if got := c.counted(t); got != 3 {
		t.Errorf("%d deletions are counted, want 3", got)
	}
	if got := c.status(t, "deleted"); got == "3" {
		t.Error("the controller derived the status, so it was not down")
	}
}

func (c flowWithoutController) checkReported(t *testing.T) {
	c.awaitOpen(t, "True")
	c.await(t, "the status has the deletions", func() error {
		if got := c.status(t, "deleted"); got != "3" {
			return fmt.Errorf("got %q", got)
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
