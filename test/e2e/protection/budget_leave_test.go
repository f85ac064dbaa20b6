//go:build controlplane

package protection

import (
	"fmt"
	"testing"
)

// budgetWithTarget returns a budget with the target Deployment web.
func budgetWithTarget(limits string) string {
	return `{apiVersion: policy.kruise.io/v1alpha1, kind: PodUnavailableBudget, metadata: {name: web},
 spec: {targetRef: {apiVersion: apps, kind: Deployment, name: web}, ` + limits + `}}`
}

func TestAnUpdateThatTakesAPodOutOfItsBudgetIsJudged(t *testing.T) {
	t.Parallel()
	n, c := newNamespace(t), connect(t)
	n.applyWithBudget(t, deploymentManifest(3, "{}"), budgetWithTarget("maxUnavailable: 0"))
	pod := n.podNames(t)[0]
	const text = "is denied by PodUnavailableBudget web"
	n.run(t, "label", "pod", pod, "more=yes")
	n.checkDenied(t, text, "label", "pod", pod, "--overwrite", "app=debug")
	n.checkDenied(t, text, "label", "pod", pod, "app-")
	n.checkDenied(t, text, "patch", "pod", pod, "--type=json", "-p", `[{"op":"remove","path":"/metadata/ownerReferences"}]`)

	n.run(t, "patch", "pub", "web", "--type=merge", "-p", `{"spec":{"maxUnavailable":1}}`)
	awaitAllowed(t, c, n.name, 1)
	n.run(t, "label", "pod", pod, "--overwrite", "app=debug")
	n.await(t, "the ReplicaSet has released the pod", func() error {
		if got := n.run(t, "get", "pod", pod, "-o", "jsonpath={.metadata.ownerReferences}"); got != "" {
			return fmt.Errorf("owners are %s", got)
		}
		return nil
	})
	awaitAllowed(t, c, n.name, 1) // the ReplicaSet replaced the pod
	n.run(t, "delete", "pod", pod)
}
