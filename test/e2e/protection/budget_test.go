//go:build e2e || controlplane

package protection

import (
	"fmt"
	"strings"
	"testing"
)

const budgetDenial = "is denied by PodUnavailableBudget web"

func TestADeletionBeyondTheBudgetIsDenied(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.applyWithBudget(t, deploymentManifest(3, "{}"), budgetManifest("minAvailable: 3"))
	name := n.podNames(t)[0]
	for _, flags := range [][]string{{}, {"--now"}, {"--force", "--grace-period=0"}, {"--dry-run=server"}, {"--cascade=orphan"}} {
		n.checkDenied(t, "3 of 3 pods are available, and 3 must be available", append([]string{"delete", "pod", name, "--wait=false"}, flags...)...)
	}
	n.checkDenied(t, budgetDenial, "delete", "pods", "--all", "--wait=false")
	n.checkDenied(t, budgetDenial, "delete", "--raw", n.path("pods")) // deletecollection
	n.checkDenied(t, budgetDenial, "delete", "replicasets", "--all", "--wait=false")
	r := n.Try(t, fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q}}`, name),
		"create", "--raw", n.path("pods")+"/"+name+"/eviction", "-f", "-")
	if r.Code == 0 || !strings.Contains(r.Stderr, budgetDenial) || !strings.Contains(r.Stderr, "TooManyRequests") && !strings.Contains(r.Stderr, "429") && !strings.Contains(r.Stderr, "EVICT") {
		t.Errorf("an eviction:\n%s", r)
	}
	if got := n.podNames(t); len(got) != 3 {
		t.Errorf("remaining pods are %v", got)
	}
	// A lower minimum allows a deletion.
	n.run(t, "patch", "pub", "web", "--type=merge", "-p", `{"spec":{"minAvailable":2}}`)
	n.await(t, "the budget allows a deletion", func() error {
		if r := n.try(t, "delete", "pod", name, "--wait=false"); r.Code != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
}
