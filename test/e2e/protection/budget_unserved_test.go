//go:build controlplane

package protection

import (
	"fmt"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// A CRD stops serving the version that is in the references of the pods, which nobody rewrites.
func TestABudgetProtectsPodsWhoseOwnerIsServedInAnotherVersion(t *testing.T) {
	t.Parallel()
	n, c := newNamespace(t), connect(t)
	group := n.name + ".example.com"
	n.cleanup(t, "delete", "clusterrole", n.name, "--ignore-not-found")
	n.cleanup(t, "delete", "crd", "games."+group, "--ignore-not-found")
	version := `{name: %s, served: true, storage: %t, subresources: {scale: {specReplicasPath: .spec.instances, statusReplicasPath: .status.instances}},
  schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`
	n.apply(t, fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: games.%[1]s}, spec: {group: %[1]s, scope: Namespaced,
 names: {kind: Game, plural: games}, versions: [%[3]s, %[4]s]}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %[2]s, labels: {breakwater.dev/owners: "true"}},
 rules: [{apiGroups: [%[1]s], resources: [games, games/scale], verbs: [get]}]}`,
		group, n.name, fmt.Sprintf(version, "v1alpha1", false), fmt.Sprintf(version, "v1", true)))
	n.run(t, "wait", "--for=condition=Established", "crd/games."+group, "--timeout=60s")
	n.await(t, "the Game is created", func() error {
		if r := n.Try(t, fmt.Sprintf(`{apiVersion: %s/v1, kind: Game, metadata: {name: web}, spec: {instances: 3}}`, group), "apply", "-f", "-"); r.Code != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	n.apply(t, controlledPods(group+"/v1alpha1", "Game", n.run(t, "get", "games."+group, "web", "-o", "jsonpath={.metadata.uid}"), 3))
	n.awaitReady(t, shortTimeout)
	n.apply(t, budgetManifest("maxUnavailable: 0"))
	awaitTotal := func() {
		t.Helper()
		awaitBudget(t, c, n.name, 2*time.Minute, func(b *v1alpha1.PodUnavailableBudget) error {
			if s := b.Status; s.ObservedGeneration != b.Generation || s.TotalReplicas != 3 || s.CurrentAvailable != 3 ||
				!s.GetCondition(v1alpha1.BudgetSynced).IsTrue() {
				return fmt.Errorf("total %d, current %d: %v", s.TotalReplicas, s.CurrentAvailable, s.Conditions)
			}
			return nil
		})
	}
	awaitTotal()
	n.awaitGuarding(t, shortTimeout)
	n.checkDenied(t, budgetDenial, "delete", "pod", "web-0")

	n.run(t, "patch", "crd", "games."+group, "--type=json", "-p", `[{"op": "replace", "path": "/spec/versions/0/served", "value": false}]`)
	n.await(t, "v1alpha1 is not served", func() error {
		if r := n.try(t, "get", "--raw", fmt.Sprintf("/apis/%s/v1alpha1/namespaces/%s/games/web", group, n.name)); r.Code == 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	// Until a process may repeat the discovery, it cannot decide.
	if r := n.try(t, "delete", "pod", "web-0"); r.Code == 0 {
		t.Errorf("the pod is deleted: %s", r)
	}
	n.awaitDenied(t, budgetDenial, "delete", "pod", "web-0")
	n.run(t, "patch", "pub", "web", "--type=merge", "-p", `{"spec":{"maxUnavailable":"0%"}}`)
	awaitTotal()
}
