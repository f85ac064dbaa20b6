//go:build controlplane

package protection

import "testing"

// checkGeneratedBudgetsOfAKnativeService checks that a Knative Service has generated budgets, and that
// the namespace generates none for the Deployments of its Revisions.
func checkGeneratedBudgetsOfAKnativeService(t *testing.T) {
	t.Helper()
	n := newNamespace(t)
	n.run(t, "annotate", "namespace", n.name, "policy.kruise.io/generate-pub=true", "policy.kruise.io/generate-pdb=true",
		"policy.kruise.io/generate-pub-minAvailable=2")
	configuration := n.newKnativeService(t)
	n.newRevision(t, configuration, "web-00001", 2)
	n.newRevision(t, configuration, "web-00002", 2)
	n.routeTo(t, "web-00001")
	n.awaitLimitOf(t, "pub", "knativeservice-web", "2")
	n.awaitLimitOf(t, "pdb", "knativeservice-web", "25%")
	n.run(t, "wait", "--for=condition=Guarding", "pub/knativeservice-web", "--timeout=60s")

	// The budget follows the traffic, and the Deployments of Revisions have none.
	n.checkDenied(t, "is denied by PodUnavailableBudget knativeservice-web", "delete", "pod", n.revisionPods(t, "web-00001")[0])
	n.run(t, append([]string{"delete", "pod"}, n.revisionPods(t, "web-00002")...)...)
	if got := n.run(t, "get", "pub,pdb", "-o", "name"); got != "podunavailablebudget.policy.kruise.io/knativeservice-web\npoddisruptionbudget.policy/knativeservice-web\n" {
		t.Errorf("the namespace has the budgets %s", got)
	}
	if got := n.run(t, "get", "pdb", "knativeservice-web", "-o", "jsonpath={.spec.selector.matchLabels}"); got != `{"serving.knative.dev/service":"web"}` {
		t.Errorf("the PodDisruptionBudget selects %s", got)
	}

	// The budget is restored, and follows the annotations of the Service.
	n.run(t, "patch", "pub", "knativeservice-web", "--type=merge", "-p", `{"spec":{"targetRef":{"name":"other"},"minAvailable":1}}`)
	n.awaitLimitOf(t, "pub", "knativeservice-web", "2")
	n.run(t, "annotate", "services.serving.knative.dev", "web", "policy.kruise.io/generate-pub-maxUnavailable=50%", "policy.kruise.io/generate-pdb=false")
	n.awaitLimitOf(t, "pub", "knativeservice-web", "50%")
	n.awaitLimitOf(t, "pdb", "knativeservice-web", "")
	n.run(t, "delete", "services.serving.knative.dev", "web", "--timeout=60s")
	n.awaitLimitOf(t, "pub", "knativeservice-web", "")
}
