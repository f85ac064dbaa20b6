//go:build e2e || controlplane

package protection

import (
	"fmt"
	"strings"
	"testing"
)

// awaitLimit waits for the limit of the Deployment's generated budget.
func (n *namespace) awaitLimit(t *testing.T, kind, want string) {
	t.Helper()
	n.awaitLimitOf(t, kind, "deployment-web", want)
}

func (n *namespace) awaitLimitOf(t *testing.T, kind, name, want string) {
	t.Helper()
	n.await(t, fmt.Sprintf("the limit of the generated %s %s is %q", kind, name, want), func() error {
		if got := n.getIfExists(t, kind, name, "{.spec.maxUnavailable}{.spec.minAvailable}"); got != want {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
}

func TestGeneratedBudgetsFollowTheirWorkload(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.apply(t, deploymentManifest(4, "{rollingUpdate: {maxUnavailable: 1}}"))
	n.run(t, "annotate", "deployment", "web", "policy.kruise.io/generate-pub=true", "policy.kruise.io/generate-pdb=true",
		"policy.kruise.io/generate-pdb-minAvailable=50%")
	n.awaitLimit(t, "pub", "1")
	n.awaitLimit(t, "pdb", "50%")
	n.run(t, "wait", "--for=condition=Guarding", "pub/deployment-web", "--timeout=60s")

	n.run(t, "patch", "deployment", "web", "-p", `{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":2}}}}`)
	n.awaitLimit(t, "pub", "2")
	n.run(t, "patch", "pub", "deployment-web", "--type=merge", "-p", `{"spec":{"maxUnavailable":4}}`)
	n.awaitLimit(t, "pub", "2")
	n.run(t, "patch", "pub", "deployment-web", "--type=merge", "-p", `{"spec":{"maxUnavailable":null,"minAvailable":0}}`)
	n.awaitLimit(t, "pub", "2")
	n.run(t, "patch", "pub", "deployment-web", "--type=merge", "-p", `{"spec":{"targetRef":null,"selector":{"matchLabels":{"app":"other"}}}}`)
	n.await(t, "the target of the generated budget is restored", func() error {
		if got := n.get(t, "pub", "deployment-web", "{.spec.targetRef.name}{.spec.selector}"); got != "web" {
			return fmt.Errorf("the budget selects %q", got)
		}
		return nil
	})
	n.run(t, "patch", "pdb", "deployment-web", "--type=merge", "-p", `{"spec":{"maxUnavailable":"100%","minAvailable":null}}`)
	n.awaitLimit(t, "pdb", "50%")
	n.run(t, "delete", "pub", "deployment-web")
	n.awaitLimit(t, "pub", "2")
	n.run(t, "annotate", "deployment", "web", "policy.kruise.io/generate-pub-minAvailable=3")
	n.awaitLimit(t, "pub", "3")
	n.run(t, "annotate", "deployment", "web", "policy.kruise.io/generate-pdb-")
	n.awaitLimit(t, "pdb", "")
	n.run(t, "delete", "deployment", "web", "--timeout=60s")
	n.awaitLimit(t, "pub", "")
}

// An orphaning deletion removes the owner of the budgets. A new Deployment of the name adopts them.
func TestGeneratedBudgetsAreAdoptedAfterAnOrphaningDeletion(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	manifest := func(limit int) string {
		return deploymentManifest(4, fmt.Sprintf("{rollingUpdate: {maxUnavailable: %d}}", limit))
	}
	n.run(t, "annotate", "namespace", n.name, "policy.kruise.io/generate-pub=true", "policy.kruise.io/generate-pdb=true")
	n.apply(t, manifest(1))
	n.awaitLimit(t, "pub", "1")
	n.awaitLimit(t, "pdb", "1")
	n.run(t, "delete", "deployment", "web", "--cascade=orphan", "--timeout=60s")
	n.apply(t, manifest(2))
	n.awaitLimit(t, "pub", "2")
	n.awaitLimit(t, "pdb", "2")
	n.run(t, "delete", "deployment", "web", "--timeout=60s")
	n.awaitLimit(t, "pub", "")
	n.awaitLimit(t, "pdb", "")
}

func TestANamespaceGeneratesBudgetsForAllItsWorkloads(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.run(t, "annotate", "namespace", n.name, "policy.kruise.io/generate-pub=true", "policy.kruise.io/generate-pub-maxUnavailable=10%")
	n.apply(t, deploymentManifest(2, "{}"))
	n.awaitLimit(t, "pub", "10%")
	n.run(t, "annotate", "deployment", "web", "policy.kruise.io/generate-pub=false")
	n.awaitLimit(t, "pub", "")
}

// Kubernetes evicts no pod that two PodDisruptionBudgets select.
func TestAnEvictionWorksBesideAPodDisruptionBudgetOfATeam(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	const team = `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: team}, spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}}`
	n.run(t, "annotate", "namespace", n.name, "policy.kruise.io/generate-pdb=true")
	n.apply(t, deploymentManifest(3, "{}"))
	n.awaitLimit(t, "pdb", "25%")
	n.awaitRollout(t)

	n.apply(t, team)
	n.awaitLimit(t, "pdb", "")
	n.await(t, "an Event says why", func() error {
		if got := n.eventMessages(t, n.name, "involvedObject.name=web,reason=GeneratedBudgetOverlaps"); !strings.Contains(got, "PodDisruptionBudget team selects the pods") {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	name := n.podNames(t)[0]
	n.await(t, "a pod is evicted", func() error { return n.evict(t, n.clients, name) })

	n.run(t, "delete", "pdb", "team")
	n.awaitLimit(t, "pdb", "25%")

	// The generated one has no owner after an orphaning deletion.
	n.run(t, "delete", "deployment", "web", "--cascade=orphan", "--timeout=60s")
	n.apply(t, team)
	n.apply(t, deploymentManifest(3, "{}"))
	n.awaitLimit(t, "pdb", "")
}
