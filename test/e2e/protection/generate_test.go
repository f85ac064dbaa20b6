//go:build e2e

package protection

import (
	"fmt"
	"testing"
)

// says returns what the generated budget of the Deployment says.
func (n *namespace) says(t *testing.T, kind string) string {
	t.Helper()
	return n.run(t, "get", kind, "deployment-web", "--ignore-not-found", "-o", "jsonpath={.spec.maxUnavailable}{.spec.minAvailable}")
}

func (n *namespace) untilSays(t *testing.T, kind, want string) {
	t.Helper()
	n.until(t, fmt.Sprintf("the generated %s says %q", kind, want), func() error {
		if got := n.says(t, kind); got != want {
			return fmt.Errorf("it says %q", got)
		}
		return nil
	})
}

func TestGeneratedBudgetsFollowTheirWorkload(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.apply(t, webWith(4, "{rollingUpdate: {maxUnavailable: 1}}"))
	n.run(t, "annotate", "deployment", "web", "policy.kruise.io/generate-pub=true", "policy.kruise.io/generate-pdb=true",
		"policy.kruise.io/generate-pdb-minAvailable=50%")
	n.untilSays(t, "pub", "1")
	n.untilSays(t, "pdb", "50%")
	n.run(t, "wait", "--for=condition=Guarding", "pub/deployment-web", "--timeout=60s")

	n.run(t, "patch", "deployment", "web", "-p", `{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":2}}}}`)
	n.untilSays(t, "pub", "2")
	n.run(t, "patch", "pub", "deployment-web", "--type=merge", "-p", `{"spec":{"maxUnavailable":4}}`)
	n.untilSays(t, "pub", "2")
	n.run(t, "delete", "pub", "deployment-web")
	n.untilSays(t, "pub", "2")
	n.run(t, "annotate", "deployment", "web", "policy.kruise.io/generate-pub-minAvailable=3")
	n.untilSays(t, "pub", "3")
	n.run(t, "annotate", "deployment", "web", "policy.kruise.io/generate-pdb-")
	n.untilSays(t, "pdb", "")
	n.run(t, "delete", "deployment", "web", "--timeout=60s")
	n.untilSays(t, "pub", "")
}

func TestANamespaceGeneratesBudgetsForAllItsWorkloads(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.run(t, "annotate", "namespace", n.name, "policy.kruise.io/generate-pub=true", "policy.kruise.io/generate-pub-maxUnavailable=10%")
	n.apply(t, webWith(2, "{}"))
	n.untilSays(t, "pub", "10%")
	n.run(t, "annotate", "deployment", "web", "policy.kruise.io/generate-pub=false")
	n.untilSays(t, "pub", "")
}
