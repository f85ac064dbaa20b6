//go:build controlplane

package protection

import (
	"fmt"
	"testing"
)

// A watch makes the controller compute a changed budget. Until then it denies, so a request
// after the change is never judged by the former limit.
func TestAChangedBudgetIsInEffect(t *testing.T) {
	t.Parallel()
	n, c := newNamespace(t), connect(t)
	n.applyWithBudget(t, deploymentManifest(4, "{}"), budgetManifest("maxUnavailable: 0"))
	limit := func(pods int) {
		n.run(t, "patch", "pub", "web", "--type=merge", "-p", fmt.Sprintf(`{"spec":{"maxUnavailable":%d}}`, pods))
	}
	awaitAllowed(t, c, n.name, 0)
	n.checkDenied(t, budgetDenial, "delete", "pod", n.podNames(t)[0], "--wait=false")

	limit(1)
	n.await(t, "the budget allows a deletion", func() error {
		if r := n.try(t, "delete", "pod", n.podNames(t)[0], "--wait=false"); r.Code != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})

	awaitAllowed(t, c, n.name, 1)
	limit(0)
	if r := n.try(t, "delete", "pod", n.podNames(t)[0], "--wait=false"); r.Code == 0 {
		t.Errorf("a deletion is allowed by the former limit:\n%s", r)
	}
	awaitAllowed(t, c, n.name, 0)
}
