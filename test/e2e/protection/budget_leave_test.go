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
		if got := n.get(t, "pod", pod, "{.metadata.ownerReferences}"); got != "" {
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
	const denial = "would leave its controller, so PodUnavailableBudget web may no longer protect its pods"
	for what, request := range map[string][]string{
		"a label":         {"label", "replicaset", name, "app=other", "--overwrite"},
		"no label":        {"label", "replicaset", name, "app-"},
		"its controller":  {"patch", "replicaset", name, "--type=json", "-p", `[{"op":"remove","path":"/metadata/ownerReferences"}]`},
		"through status":  {"patch", "replicaset", name, "--subresource=status", "--type=merge", "-p", `{"metadata":{"labels":{"app":"other"}}}`},
		"with a dry run":  {"label", "replicaset", name, "app=other", "--overwrite", "--dry-run=server"},
		"several at once": {"label", "replicasets", "--all", "app=other", "--overwrite"},
	} {
		t.Run(what, func(t *testing.T) { n.checkDenied(t, denial, request...) })
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

// The garbage collector deletes what has only owners that do not exist.
func TestAnOwnerThatDoesNotExistTakesNoPodOutOfABudget(t *testing.T) {
	t.Parallel()
	for name, budget := range map[string]string{"selector": budgetManifest("maxUnavailable: 0"), "target": budgetWithTarget("maxUnavailable: 0")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNamespace(t)
			n.applyWithBudget(t, deploymentManifest(2, "{}"), budget)
			pod := n.podNames(t)[0]
			const denial = "is denied by PodUnavailableBudget web"
			const fake = `{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"fake","controller":true}`
			n.checkDenied(t, denial, "patch", "pod", pod, "--type=json", "-p", `[{"op":"replace","path":"/metadata/ownerReferences/0/name","value":"gone"}]`)
			n.checkDenied(t, denial, "patch", "pod", pod, "--type=json", "-p", `[{"op":"replace","path":"/metadata/ownerReferences","value":[`+fake+`]}]`)

			set := strings.TrimSpace(n.run(t, "get", "replicasets", "-o", "jsonpath={.items[0].metadata.name}"))
			for _, patch := range []string{
				`[{"op":"replace","path":"/metadata/ownerReferences","value":[` + fake + `]}]`,
				`[{"op":"replace","path":"/metadata/ownerReferences","value":[` + strings.Replace(fake, "true", "false", 1) + `]}]`,
				`[{"op":"replace","path":"/metadata/ownerReferences/0/name","value":"gone"}]`,
			} {
				n.checkDenied(t, "would leave its controller", "patch", "replicaset", set, "--type=json", "-p", patch)
				n.checkDenied(t, "would leave its controller", "patch", "replicaset", set, "--type=json", "-p", patch, "--subresource=status")
			}
			n.run(t, "delete", "deployment", "web", "--timeout=60s")
		})
	}
}

// A controller that is not the one of Deployments, such as that of Argo Rollouts, is a user.
// The HorizontalPodAutoscaler, whose API has two versions, stands for its custom resource.
func TestControllersAdoptAndOrphanReplicaSetsUnderABudget(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.applyWithBudget(t, deploymentManifest(2, "{}"), budgetManifest("maxUnavailable: 0"))
	n.run(t, "delete", "deployment", "web", "--cascade=orphan")
	set := strings.TrimSpace(n.run(t, "get", "replicasets", "-o", "jsonpath={.items[0].metadata.name}"))
	n.await(t, "the ReplicaSet is orphaned", func() error {
		if got := n.get(t, "replicaset", set, "{.metadata.ownerReferences}"); got != "" {
			return fmt.Errorf("owners are %s", got)
		}
		return nil
	})
	n.apply(t, `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: rollout}, spec: {maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: none}}}`)
	uid := n.run(t, "get", "hpa", "rollout", "-o", "jsonpath={.metadata.uid}")
	adopt := []string{"patch", "replicaset", set, "--type=merge", "-p",
		`{"metadata":{"ownerReferences":[{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","name":"rollout","uid":"` + uid + `","controller":true}]}}`}
	replace := func(field, value string) []string {
		return []string{"patch", "replicaset", set, "--type=json", "-p", `[{"op":"replace","path":"/metadata/ownerReferences/0/` + field + `","value":"` + value + `"}]`}
	}
	orphan := []string{"patch", "replicaset", set, "--type=json", "-p", `[{"op":"remove","path":"/metadata/ownerReferences"}]`}
	const denial = "would leave its controller"
	n.run(t, adopt...)
	n.checkDenied(t, denial, replace("apiVersion", "other/v1")...)
	n.run(t, replace("apiVersion", "autoscaling/v2")...)
	n.run(t, orphan...) // after an edit of the selector of the controller

	n.run(t, adopt...)
	n.run(t, "patch", "pub", "web", "--type=merge", "-p",
		`{"spec":{"selector":null,"targetRef":{"apiVersion":"autoscaling","kind":"HorizontalPodAutoscaler","name":"rollout"}}}`)
	n.awaitDenied(t, denial, orphan...)
	n.run(t, replace("apiVersion", "autoscaling/v2")...)
}

// A Deployment copies its selector to its ReplicaSets.
func TestAReplicaSetIsNotTakenFromATargetThatSelectsWithExpressions(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.applyWithBudget(t, fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 2,
 selector: {matchLabels: {app: web}, matchExpressions: [{key: tier, operator: In, values: [web, shop]}, {key: stage, operator: NotIn, values: [test]},
  {key: team, operator: Exists}, {key: old, operator: DoesNotExist}]},
 template: {metadata: {labels: {app: web, tier: web, team: a}}, spec: %s}}}`, simulatedPodSpec), budgetWithTarget("maxUnavailable: 0"))
	set := strings.TrimSpace(n.run(t, "get", "replicasets", "-o", "jsonpath={.items[0].metadata.name}"))
	for _, label := range []string{"tier=other", "tier-", "stage=test", "team-", "old=yes"} {
		n.checkDenied(t, "would leave its controller", "label", "replicaset", set, label, "--overwrite")
	}
	n.run(t, "label", "replicaset", set, "tier=shop", "stage=live", "team=b", "more=yes", "--overwrite")
	if got := n.run(t, "get", "replicasets", "-o", "jsonpath={.items[*].metadata.name}"); got != set {
		t.Errorf("the ReplicaSets are %s, want %s", got, set)
	}
}

// awaitDenied waits until a request is denied: the webhook may not know a change of the budget yet.
func (n *namespace) awaitDenied(t *testing.T, text string, args ...string) {
	t.Helper()
	n.await(t, strings.Join(args, " ")+" is denied", func() error {
		if r := n.try(t, append(args, "--dry-run=server")...); r.Code == 0 || !strings.Contains(r.Stderr, text) {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	n.checkDenied(t, text, args...)
}
