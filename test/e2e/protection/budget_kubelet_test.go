//go:build e2e

package protection

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

// The pod is on the real node, because simulated nodes cannot resize a pod.
func TestAResizeIsDecidedByTheBudget(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.apply(t, `{apiVersion: v1, kind: Pod, metadata: {name: web, labels: {app: web}}, spec: {terminationGracePeriodSeconds: 0,
 containers: [{name: sleep, image: busybox, command: [/bin/sleep, infinity], resources: {requests: {cpu: 10m, memory: 10Mi}},
  resizePolicy: [{resourceName: cpu, restartPolicy: RestartContainer}, {resourceName: memory, restartPolicy: NotRequired}]}]}}`)
	n.run(t, "wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
	n.apply(t, budgetManifest("minAvailable: 1"))
	n.awaitGuarding(t, shortTimeout)
	resizeTo := func(requests string) []string {
		return []string{"patch", "pod", "web", "--subresource=resize", "-p", `{"spec":{"containers":[{"name":"sleep","resources":{"requests":` + requests + `}}]}}`}
	}
	n.run(t, resizeTo(`{"memory":"11Mi"}`)...) // without a restart the resize is not charged
	resize := resizeTo(`{"cpu":"20m"}`)
	n.checkDenied(t, budgetDenial, resize...)
	n.run(t, "patch", "pub", "web", "--type=merge", "-p", `{"spec":{"minAvailable":0}}`)
	n.await(t, "the budget allows the resize", func() error {
		if r := n.try(t, resize...); r.Code != 0 {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	// The kubelet reports the resize before the charge expires.
	awaitBudget(t, connect(t), n.name, 30*time.Second, func(b *v1alpha1.PodUnavailableBudget) error {
		if len(b.Status.UnavailablePods) > 0 || b.Status.UnavailableAllowed != 1 {
			return fmt.Errorf("charged %v, %d allowed", b.Status.UnavailablePods, b.Status.UnavailableAllowed)
		}
		return nil
	})
	if got := n.run(t, "get", "pod", "web", "-o", "jsonpath={.status.containerStatuses[0].resources.requests.cpu} {.status.containerStatuses[0].restartCount}"); got != "20m 1" {
		t.Errorf("got %q", got)
	}
}

// A drain waits for the budget and completes.
func TestADrainWaitsAndCompletes(t *testing.T) {
	n := newNamespace(t)
	nodes := strings.Fields(n.run(t, "get", "nodes", "-l", "type=kwok", "-o", "jsonpath={.items[*].metadata.name}"))[:2]
	here := fmt.Sprintf(`affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]}]}}}, `,
		strings.Join(nodes, ", "))
	workload := strings.Replace(deploymentManifest(6, "{}"), "nodeSelector: {type: kwok}", here+"nodeSelector: {type: kwok}", 1)
	// The drain selects only pods of this test.
	workload = strings.Replace(workload, "metadata: {labels: {app: web}}", "metadata: {labels: {app: web, drained: "+n.name+"}}", 1)
	n.applyWithBudget(t, workload, budgetManifest("maxUnavailable: 1"))
	on := func(node string) []string {
		return strings.Fields(n.run(t, "get", "pods", "-l", "app=web", "--field-selector=spec.nodeName="+node, "-o", "name"))
	}
	node := nodes[0]
	if len(on(nodes[1])) > len(on(node)) { // the node has at least three of the six pods
		node = nodes[1]
	}
	t.Cleanup(func() {
		if r, err := n.Run(context.Background(), "uncordon", node); err != nil || r.Code != 0 {
			t.Errorf("%s: %v", r, err)
		}
	})
	drain := n.try(t, "drain", node, "--pod-selector=drained="+n.name, "--ignore-daemonsets", "--timeout=120s")
	if drain.Code != 0 || !strings.Contains(drain.Stderr, budgetDenial) {
		t.Errorf("the drain was not denied and repeated:\n%s", drain)
	}
	n.awaitRollout(t)
	if left := on(node); len(left) > 0 {
		t.Errorf("pods remain on the node: %v", left)
	}
}

// The pods of the Job are on the real node, because simulated pods of a Job complete.
func TestATargetMayBeAJob(t *testing.T) {
	t.Parallel()
	newNamespace(t).checkTarget(t, targetKind{"batch/v1", "Job", "parallelism: 2, completions: 2", endlessPodSpec})
}

// endlessPodSpec is the spec of a pod for the real node that does not complete.
const endlessPodSpec = `{terminationGracePeriodSeconds: 0, restartPolicy: Never, containers: [{name: sleep, image: busybox, command: [/bin/sleep, infinity]}]}`
