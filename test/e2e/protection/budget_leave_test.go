//go:build controlplane

package protection

import (
	"fmt"
	"strings"
	"testing"
)

// budgetWithTarget returns a budget with the target Deployment web.
func budgetWithTarget(limits string) string {
	return `{apiVersion: policy.kruise.io/v1alpha1, kind: PodUnavailableBudget, metadata: {name: web},
 spec: {targetRef: {apiVersion: apps, kind: Deployment, name: web}, ` + limits + `}}`
}

func TestAnUpdateThatTakesAPodOutOfItsBudgetIsDecidedByTheBudget(t *testing.T) {
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
	n.await(t, "the ReplicaSet has orphaned the pod", func() error {
		if got := n.run(t, "get", "pod", pod, "-o", "jsonpath={.metadata.ownerReferences}"); got != "" {
			return fmt.Errorf("owners are %s", got)
		}
		return nil
	})
	awaitAllowed(t, c, n.name, 1) // the ReplicaSet replaced the pod
	n.run(t, "delete", "pod", pod)
}

// A Deployment gives up a ReplicaSet that its selector does not match, and starts other pods.
func TestAReplicaSetIsNotTakenFromTheTargetOfABudget(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.applyWithBudget(t, deploymentManifest(3, "{}"), budgetWithTarget("maxUnavailable: 0"))
	name := strings.TrimSpace(n.run(t, "get", "replicasets", "-o", "jsonpath={.items[0].metadata.name}"))
	const denial = "would leave its controller, so PodUnavailableBudget web would no longer protect its pods"
	for what, request := range map[string][]string{
		"a label":         {"label", "replicaset", name, "app=other", "--overwrite"},
		"no label":        {"label", "replicaset", name, "app-"},
		"its controller":  {"patch", "replicaset", name, "--type=json", "-p", `[{"op":"remove","path":"/metadata/ownerReferences"}]`},
		"with a dry run":  {"label", "replicaset", name, "app=other", "--overwrite", "--dry-run=server"},
		"several at once": {"label", "replicasets", "--all", "app=other", "--overwrite"},
	} {
		n.await(t, what+" is denied", func() error {
			if r := n.try(t, request...); r.Code == 0 || !strings.Contains(r.Stderr, denial) {
				return fmt.Errorf("%s", r)
			}
			return nil
		})
	}
	n.run(t, "label", "replicaset", name, "team=a")
	n.run(t, "scale", "deployment", "web", "--replicas=2")
	n.run(t, "rollout", "restart", "deployment", "web")
	n.run(t, "patch", "pub", "web", "--type=merge", "-p", `{"spec":{"shadow":true}}`)
	n.await(t, "a budget in shadow mode denies nothing", func() error {
		if r := n.try(t, "label", "replicaset", name, "app=other", "--overwrite", "--dry-run=server"); r.Code != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
}
