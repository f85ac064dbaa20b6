//go:build controlplane

package protection

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// controlledPods returns pods web-0, web-1 and so on with a controller.
func controlledPods(apiVersion, kind, uid string, count int) string {
	var all []string
	for i := range count {
		all = append(all, fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: web-%d, labels: {app: web},
 ownerReferences: [{apiVersion: %s, kind: %s, name: web, uid: %s, controller: true}]}, spec: %s}`, i, apiVersion, kind, uid, simulatedPodSpec))
	}
	return strings.Join(all, "\n---\n")
}

// The budget exists before the CRD of its target. No controller replaces the pods.
func TestABudgetCountsByTheScaleOfACustomResource(t *testing.T) {
	t.Parallel()
	n, c := newNamespace(t), connect(t)
	group := n.name + ".example.com"
	n.apply(t, fmt.Sprintf(`{apiVersion: policy.kruise.io/v1alpha1, kind: PodUnavailableBudget, metadata: {name: web},
 spec: {targetRef: {apiVersion: %s, kind: Game, name: web}, maxUnavailable: 1}}`, group))
	awaitAllowed(t, c, n.name, 0)

	n.cleanup(t, "delete", "clusterrole", n.name, "--ignore-not-found")
	n.cleanup(t, "delete", "crd", "games."+group, "--ignore-not-found")
	n.apply(t, fmt.Sprintf(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: games.%[1]s}, spec: {group: %[1]s, scope: Namespaced,
 names: {kind: Game, plural: games}, versions: [{name: v1, served: true, storage: true, subresources: {scale: {specReplicasPath: .spec.instances, statusReplicasPath: .status.instances}},
  schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: %[2]s, labels: {breakwater.dev/owners: "true"}},
 rules: [{apiGroups: [%[1]s], resources: [games, games/scale], verbs: [get]}]}`, group, n.name))
	n.run(t, "wait", "--for=condition=Established", "crd/games."+group, "--timeout=60s")
	n.await(t, "the Game is created", func() error {
		if r := n.Try(t, fmt.Sprintf(`{apiVersion: %s/v1, kind: Game, metadata: {name: web}, spec: {instances: 3}}`, group), "apply", "-f", "-"); r.Code != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	n.apply(t, controlledPods(group+"/v1", "Game", n.run(t, "get", "games."+group, "web", "-o", "jsonpath={.metadata.uid}"), 3))
	awaitBudget(t, c, n.name, 2*time.Minute, func(b *v1alpha1.PodUnavailableBudget) error {
		if s := b.Status; s.TotalReplicas != 3 || s.CurrentAvailable != 3 || s.UnavailableAllowed != 1 {
			return fmt.Errorf("total %d, current %d, allowed %d: %v", s.TotalReplicas, s.CurrentAvailable, s.UnavailableAllowed, s.Conditions)
		}
		return nil
	})
	n.awaitGuarding(t, shortTimeout)

	n.run(t, "delete", "pod", "web-0")
	b := awaitAllowed(t, c, n.name, 0)
	if b.Status.TotalReplicas != 3 || b.Status.CurrentAvailable != 2 {
		t.Errorf("total %d, current %d after a deletion", b.Status.TotalReplicas, b.Status.CurrentAvailable)
	}
	n.checkDenied(t, budgetDenial, "delete", "pod", "web-1")
}

// A ConfigMap has no scale subresource.
func TestABudgetThatNeedsUnknownReplicasAllowsNothing(t *testing.T) {
	t.Parallel()
	n, c := newNamespace(t), connect(t)
	n.run(t, "create", "configmap", "web")
	n.apply(t, controlledPods("v1", "ConfigMap", n.run(t, "get", "configmap", "web", "-o", "jsonpath={.metadata.uid}"), 3))
	n.awaitReady(t, shortTimeout)
	n.apply(t, budgetManifest("maxUnavailable: 1"))
	n.awaitGuarding(t, shortTimeout)
	n.checkDenied(t, "depends on unknown replicas of an owner (ConfigMap web: ", "delete", "pod", "web-0")
	if got := n.run(t, "get", "pub", "web", "-o", `jsonpath={.status.conditions[?(@.type=="Synced")].reason}`); got != v1alpha1.ReasonOwnersUnknown {
		t.Errorf("reason of condition Synced is %q", got)
	}

	// A number of pods that must be available does not depend on the replicas.
	n.run(t, "patch", "pub", "web", "--type=merge", "-p", `{"spec":{"maxUnavailable":null,"minAvailable":2}}`)
	awaitAllowed(t, c, n.name, 1)
	n.run(t, "delete", "pod", "web-0")
	awaitAllowed(t, c, n.name, 0)
	n.checkDenied(t, budgetDenial, "delete", "pod", "web-1")
}

// The garbage collector deletes the pods after their controller, whose owners are not known then.
// The CronJob stands for the custom resource of an operator.
func TestTheDeletionOfAControllerBelowAnotherIsDecidedByTheBudget(t *testing.T) {
	t.Parallel()
	for kind, manifest := range map[string]string{
		"daemonset": `{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: web, ownerReferences: [%s]},
 spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: %s}}}`,
		"replicationcontroller": `{apiVersion: v1, kind: ReplicationController, metadata: {name: web, ownerReferences: [%s]},
 spec: {replicas: 2, selector: {app: web}, template: {metadata: {labels: {app: web}}, spec: %s}}}`,
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			n := newNamespace(t)
			n.apply(t, `{apiVersion: batch/v1, kind: CronJob, metadata: {name: operator}, spec: {schedule: "0 0 1 1 *", suspend: true,
 jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: busybox}]}}}}}}`)
			owner := fmt.Sprintf(`{apiVersion: batch/v1, kind: CronJob, name: operator, uid: %s, controller: true}`,
				n.run(t, "get", "cronjob", "operator", "-o", "jsonpath={.metadata.uid}"))
			n.apply(t, fmt.Sprintf(manifest, owner, simulatedPodSpec))
			n.await(t, "its pods exist", func() error {
				if len(n.podNames(t)) < 2 {
					return errors.New("fewer than 2")
				}
				return nil
			})
			n.awaitReady(t, shortTimeout)
			n.apply(t, budgetManifest("maxUnavailable: 0"))
			n.awaitGuarding(t, shortTimeout)
			n.checkDenied(t, budgetDenial, "delete", kind, "web", "--cascade=background")
			n.checkDenied(t, budgetDenial, "delete", kind, "--all", "--wait=false")

			n.run(t, "delete", "cronjob", "operator")
			n.await(t, "the application is deleted", func() error {
				if got := n.podNames(t); len(got) > 0 {
					return fmt.Errorf("pods %v", got)
				}
				return nil
			})
		})
	}
}

// A LeaderWorkerSet creates a group like this, and recreates it with this deletion. A StatefulSet stands for it.
func TestAGroupIsDeletedWithItsLeader(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	const set = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: %[1]s, ownerReferences: [%[2]s]},
 spec: {replicas: %[3]d, selector: {matchLabels: {app: web, set: %[1]s}}, template: {metadata: {labels: {app: web, set: %[1]s}}, spec: %[4]s}}}`
	n.apply(t, fmt.Sprintf(set, "leaders", "", 1, simulatedPodSpec))
	n.await(t, "the leader exists", func() error {
		if got := n.podNames(t); len(got) != 1 {
			return fmt.Errorf("pods %v", got)
		}
		return nil
	})
	leader := n.get(t, "pod", "leaders-0", "{.metadata.uid}")
	n.apply(t, fmt.Sprintf(set, "workers", fmt.Sprintf(`{apiVersion: v1, kind: Pod, name: leaders-0, uid: %s, controller: true, blockOwnerDeletion: true}`, leader), 3, simulatedPodSpec))
	n.await(t, "the workers exist", func() error {
		if got := n.podNames(t); len(got) != 4 {
			return fmt.Errorf("pods %v", got)
		}
		return nil
	})
	n.awaitReady(t, shortTimeout)
	n.apply(t, budgetManifest("maxUnavailable: 1"))
	n.awaitGuarding(t, shortTimeout)
	n.checkDenied(t, budgetDenial, "delete", "statefulset", "workers")

	n.run(t, "delete", "pod", "leaders-0", "--cascade=foreground", "--wait=false")
	n.await(t, "the group is deleted, and a new leader exists", func() error {
		if got, uid := n.podNames(t), n.getIfExists(t, "pod", "leaders-0", "{.metadata.uid}"); len(got) != 1 || uid == "" || uid == leader {
			return fmt.Errorf("pods %v, leader %q", got, uid)
		}
		return nil
	})
}

// No node runs the pods, because simulated pods of a Job complete.
func TestAJobEndsAtItsDeadlineUnderABudget(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.apply(t, targetManifest("batch/v1", "Job", "parallelism: 3", `{nodeSelector: {nowhere: "true"}, terminationGracePeriodSeconds: 0, restartPolicy: Never,
 containers: [{name: sleep, image: busybox}]}`))
	n.await(t, "the pods of the Job exist", func() error {
		if got := len(n.podNames(t)); got != 3 {
			return fmt.Errorf("%d exist", got)
		}
		return nil
	})
	for _, pod := range n.podNames(t) {
		n.run(t, "patch", "pod", pod, "--subresource=status", "-p", `{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}`)
	}
	n.apply(t, budgetManifest("maxUnavailable: 0"))
	n.awaitGuarding(t, shortTimeout)
	n.checkDenied(t, budgetDenial, "delete", "pod", n.podNames(t)[0])
	n.run(t, "patch", "job", "web", "-p", `{"spec":{"activeDeadlineSeconds":1}}`)
	n.run(t, "wait", "--for=condition=Failed", "job/web", "--timeout=60s")
	if got := n.podNames(t); len(got) > 0 {
		t.Errorf("pods of the failed Job remain: %v", got)
	}
}
