//go:build controlplane

package protection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// nodeManifest returns a simulated node whose taint only pods of
// deploymentOnNodes tolerate.
func (n *namespace) nodeManifest(name, cpu string) string {
	return fmt.Sprintf(`{apiVersion: v1, kind: Node, metadata: {name: %[2]s, annotations: {kwok.x-k8s.io/node: fake},
  labels: {e2e: %[1]s, kubernetes.io/hostname: %[2]s, kubernetes.io/os: linux}}, spec: {taints: [{key: e2e, value: %[1]s, effect: NoSchedule}]},
 status: {capacity: {cpu: "%[3]s", memory: 64Gi, pods: "110"}, allocatable: {cpu: "%[3]s", memory: 64Gi, pods: "110"}}}`, n.name, name, cpu)
}

// newNodes creates simulated nodes for this namespace only and waits until pods
// can be scheduled to them. The not-ready taint is removed after the node
// becomes Ready.
func (n *namespace) newNodes(t *testing.T, cpu string, count int) (names []string) {
	t.Helper()
	for i := range count {
		name := fmt.Sprintf("%s-%d", n.name, i)
		n.cleanup(t, "delete", "node", name, "--ignore-not-found")
		n.apply(t, n.nodeManifest(name, cpu))
		n.run(t, "wait", "--for=condition=Ready", "node/"+name, "--timeout=60s")
		n.await(t, "node "+name+" has only the taint of the test", func() error {
			if got := n.get(t, "node", name, "{.spec.taints[*].key}"); got != "e2e" {
				return fmt.Errorf("got %q", got)
			}
			return nil
		})
		names = append(names, name)
	}
	return names
}

// deploymentOnNodes returns a Deployment on the nodes of newNodes; each pod
// requests one CPU.
func (n *namespace) deploymentOnNodes(name string, replicas int, priority string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %[1]s}, spec: {replicas: %[2]d, selector: {matchLabels: {app: %[1]s}},
 template: {metadata: {labels: {app: %[1]s}}, spec: {nodeSelector: {e2e: %[3]s}, tolerations: [{key: e2e, operator: Exists}], terminationGracePeriodSeconds: 0, priorityClassName: "%[4]s",
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: %[1]s}}}],
  containers: [{name: sleep, image: busybox, resources: {requests: {cpu: "1"}}}]}}}}`, name, replicas, n.name, priority)
}

// podsOn returns the pods of web on a node that are not terminating.
func (n *namespace) podsOn(t *testing.T, node string) []string {
	t.Helper()
	return livePods(t, n.kube, n.name, metav1.ListOptions{LabelSelector: "app=web", FieldSelector: "spec.nodeName=" + node})
}

// The pods of a lost node are deleted without the webhook. They count as
// unavailable, so the drain of another node waits until they are replaced.
func TestADrainWaitsWhileAnotherNodeIsLost(t *testing.T) {
	t.Parallel()
	n, c := newNamespace(t), connect(t)
	nodes := n.newNodes(t, "8", 2)
	n.applyWithBudget(t, n.deploymentOnNodes("web", 6, ""), budgetManifest("maxUnavailable: 3"))
	if a, b := len(n.podsOn(t, nodes[0])), len(n.podsOn(t, nodes[1])); a != 3 || b != 3 {
		t.Fatalf("%d and %d pods are on the nodes", a, b)
	}
	n.run(t, "cordon", nodes[1])
	n.run(t, "delete", "node", nodes[0])
	// The pod garbage collector waits 40 s before it deletes the pods of a
	// deleted node.
	awaitBudget(t, c, n.name, 3*time.Minute, func(b *v1alpha1.PodUnavailableBudget) error {
		if s := b.Status; s.CurrentAvailable != 3 || s.UnavailableAllowed != 0 {
			return fmt.Errorf("%d available, %d allowed", s.CurrentAvailable, s.UnavailableAllowed)
		}
		return nil
	})
	drained := make(chan error, 1)
	go func() {
		r, err := n.Run(t.Context(), "drain", nodes[1], "--ignore-daemonsets", "--timeout=180s")
		if err == nil && (r.Code != 0 || !strings.Contains(r.Stderr+r.Stdout, budgetDenial)) {
			err = errors.New(r.String())
		}
		drained <- err
	}()
	n.awaitDenialEvent(t)
	select {
	case err := <-drained:
		t.Fatalf("the drain did not wait: %v", err)
	case <-time.After(6 * time.Second): // kubectl evicts again after 5 s
	}
	if left := n.podsOn(t, nodes[1]); len(left) != 3 {
		t.Errorf("remaining pods are %v", left)
	}

	n.apply(t, n.nodeManifest(nodes[0], "8"))
	if err := <-drained; err != nil {
		t.Fatalf("the drain did not wait and complete: %v", err)
	}
	// "rollout status" could read a status from before the drain.
	n.await(t, "all pods run on the restored node", func() error {
		if left := n.podsOn(t, nodes[0]); len(left) != 6 {
			return fmt.Errorf("its pods are %v", left)
		}
		return nil
	})
}

// The controller of NoExecute taints tries a deletion five times within 50 ms, and never
// again. So pods that a budget protects stay, even if the budget allows more deletions later.
func TestANoExecuteTaintIsDecidedByTheBudgetAndADrainCompletesIt(t *testing.T) {
	t.Parallel()
	n, c := newNamespace(t), connect(t)
	nodes := n.newNodes(t, "8", 2)
	n.applyWithBudget(t, n.deploymentOnNodes("web", 4, ""), budgetManifest("maxUnavailable: 0"))
	before := n.podsOn(t, nodes[0])
	n.run(t, "taint", "node", nodes[0], "e2e-maintenance=now:NoExecute")
	n.await(t, "the deletion of each pod on the node is denied", func() error {
		denied := n.eventMessages(t, n.name, "reason=DisruptionDenied")
		for _, p := range before {
			if !strings.Contains(denied, p) {
				return fmt.Errorf("no Event names %s: %s", p, denied)
			}
		}
		return nil
	})
	if after := n.podsOn(t, nodes[0]); len(before) != 2 || !slices.Equal(before, after) {
		t.Errorf("the pods on the node were %v, and are %v", before, after)
	}
	n.run(t, "patch", "pub", "web", "--type=merge", "-p", `{"spec":{"maxUnavailable":1}}`)
	awaitAllowed(t, c, n.name, 1)
	n.run(t, "drain", nodes[0], "--ignore-daemonsets", "--timeout=60s")
	n.awaitRollout(t)
}

// The scheduler deletes pods for pods of higher priority. Its deletions are
// checked like others, and a denial does not delay other pods.
func TestPreemptionIsDecidedByTheBudget(t *testing.T) {
	t.Parallel()
	n, c := newNamespace(t), connect(t)
	n.newNodes(t, "4", 1)
	n.cleanup(t, "delete", "priorityclass", n.name, "--ignore-not-found")
	n.apply(t, fmt.Sprintf(`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: %s}, value: 1000}`, n.name))
	n.applyWithBudget(t, n.deploymentOnNodes("web", 4, ""), budgetManifest("maxUnavailable: 0")) // the pods use all CPUs of the node
	undelayed := n.createAndScaleDown(t, "undelayed", 3)
	n.apply(t, n.deploymentOnNodes("urgent", 1, n.name))
	n.awaitDenialEvent(t)
	if took := n.createAndScaleDown(t, "other", 3); took > undelayed+15*time.Second {
		t.Errorf("other pods were scheduled and deleted in %s, before the denial in %s", took, undelayed)
	}
	if left := n.podNames(t); len(left) != 4 {
		t.Errorf("remaining pods are %v", left)
	}
	phase := func() string {
		return n.list(t, "pod", metav1.ListOptions{LabelSelector: "app=urgent"}, "{.items[*].status.phase}")
	}
	if got := phase(); got != "Pending" {
		t.Errorf("phase of the pod with priority is %s", got)
	}

	n.run(t, "patch", "pub", "web", "--type=merge", "-p", `{"spec":{"maxUnavailable":1}}`)
	if err := wait.PollUntilContextTimeout(t.Context(), time.Second, 2*time.Minute, true, func(context.Context) (bool, error) {
		return phase() == "Running", nil
	}); err != nil {
		t.Fatalf("the pod with priority did not run: %v", err)
	}
	b := awaitAllowed(t, c, n.name, 0) // the replacement of the deleted pod is unschedulable
	if b.Status.CurrentAvailable != 3 {
		t.Errorf("%d pods are available", b.Status.CurrentAvailable)
	}
}
