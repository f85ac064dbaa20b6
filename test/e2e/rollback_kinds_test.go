//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// simulatedPods is the part of a manifest with a template for simulated nodes.
const simulatedPods = `
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}, annotations: {` + builder.Marker + `: v1}}
    spec:
      terminationGracePeriodSeconds: 0
      nodeSelector: {type: kwok}
      tolerations: [{key: kwok.x-k8s.io/node, operator: Exists, effect: NoSchedule}]
      containers: [{name: sleep, image: busybox, command: [/bin/sleep, infinity]}]
`

// statefulSet is the manifest of a StatefulSet of simulated pods.
func statefulSet(name string, replicas int) string {
	return fmt.Sprintf("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: %[1]s}\nspec:\n  serviceName: %[1]s\n  replicas: %[2]d", name, replicas) +
		fmt.Sprintf(simulatedPods, name)
}

// daemonSet is the manifest of a DaemonSet on the simulated nodes.
func daemonSet(name string) string {
	return fmt.Sprintf("apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: %[1]s}\nspec:", name) + fmt.Sprintf(simulatedPods, name)
}

// applyManifest applies a manifest with kubectl.
func (n *namespace) applyManifest(t *testing.T, manifest string) {
	t.Helper()
	// t.TempDir has the name of the test, and kubectl splits a path at a comma.
	dir, err := os.MkdirTemp("", "manifest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file := filepath.Join(dir, "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	n.run(t, "apply", "-f", file)
}

// selfHealedStatefulSet has an unschedulable pod that its controller waits for.
func selfHealedStatefulSet(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.applyManifest(t, statefulSet("db", 3))
	n.awaitSavedTemplate(t, workload.StatefulSet, "db", 1)
	before := n.podUIDs(t)
	n.strategicPatch(t, workload.StatefulSet, "db", unschedulable)
	n.awaitAttempt(t, selfHealingTimeout+rolloutTimeout, workload.StatefulSet, "db", 3, v1alpha1.ReleaseSuccess)
	r := n.checkRollback(t, workload.StatefulSet, "db", v1alpha1.RollbackSelfHealing, 2)
	if !strings.Contains(r.Message, "db-2 (Unschedulable)") {
		t.Errorf("message is %q", r.Message)
	}
	after := n.podUIDs(t)
	for _, pod := range []string{"db-0", "db-1"} {
		if before[pod] != after[pod] {
			t.Errorf("Ready pod %s was replaced", pod)
		}
	}
	n.awaitEvent(t, "db", v1alpha1.ReasonSelfHealed, "deleted pod db-2")
}

// selfHealedDaemonSet has a pod that does not fit on its node.
func selfHealedDaemonSet(t *testing.T, e *environment) {
	n := e.optedInNamespace(t)
	n.applyManifest(t, daemonSet("agent"))
	n.awaitSavedTemplate(t, workload.DaemonSet, "agent", 1)
	n.strategicPatch(t, workload.DaemonSet, "agent", unschedulable)
	n.awaitAttempt(t, selfHealingTimeout+rolloutTimeout, workload.DaemonSet, "agent", 3, v1alpha1.ReleaseSuccess)
	n.checkRollback(t, workload.DaemonSet, "agent", v1alpha1.RollbackSelfHealing, 2)
	await(t, rolloutTimeout, "the rollout is complete", func(ctx context.Context) error {
		w, err := n.readWorkload(ctx, workload.DaemonSet, "agent")
		if err != nil {
			return err
		}
		if !w.Complete || w.Replicas == 0 {
			return fmt.Errorf("%d replicas, complete: %t", w.Replicas, w.Complete)
		}
		return nil
	})
}

// podUIDs returns the UIDs of the pods by name.
func (n *namespace) podUIDs(t *testing.T) map[string]string {
	t.Helper()
	list, err := n.kube.CoreV1().Pods(n.name).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	uids := map[string]string{}
	for i := range list.Items {
		uids[list.Items[i].Name] = string(list.Items[i].UID)
	}
	return uids
}
