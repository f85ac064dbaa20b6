//go:build e2e

package protection

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// slowPod is a pod on the real node that needs its whole grace period to end.
const slowPod = `{apiVersion: v1, kind: Pod, metadata: {name: slow, labels: {app: slow}}, spec: {terminationGracePeriodSeconds: 8,
 containers: [{name: sleep, image: busybox, command: [/bin/sh, -c, "trap '' TERM; while true; do sleep 1; done"]}]}}`

// shortPod is a pod on the real node that completes after five seconds.
const shortPod = `{apiVersion: v1, kind: Pod, metadata: {name: short, labels: {app: short}}, spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0,
 containers: [{name: sleep, image: busybox, command: [/bin/sleep, "5"]}]}}`

// While the webhook is down, the deletion of a covered pod is denied. Pods of other namespaces can be
// deleted, the kubelet ends pods, completed pods can be deleted, and namespaces terminate.
func TestAnOutageOfTheWebhookDeniesPodDeletionsOnlyInNamespacesWithABudget(t *testing.T) {
	n, other := newNamespace(t), newNamespace(t)
	n.applyWithBudget(t, deploymentManifest(2, "{}"), budgetManifest("maxUnavailable: 1"))
	other.apply(t, deploymentManifest(2, "{}"))
	unprotected, c := other.awaitRunning(t, "web", 2), connect(t)
	n.apply(t, slowPod)
	n.run(t, "wait", "--for=condition=Ready", "pod/slow", "--timeout=60s")
	n.apply(t, shortPod)
	n.run(t, "delete", "pod", "slow", "--wait=false")

	system := []string{"-n", systemNamespace}
	t.Cleanup(func() {
		for _, args := range [][]string{{"scale", "deployment", "protection-webhook", "--replicas=2"},
			{"rollout", "status", "deployment", "protection-webhook", "--timeout=90s"}} {
			if r, err := n.Run(context.Background(), append(system, args...)...); err != nil || r.Code != 0 {
				t.Errorf("%s: %v", r, err)
			}
		}
	})
	n.run(t, append(system, "scale", "deployment", "protection-webhook", "--replicas=0")...)
	n.run(t, append(system, "wait", "--for=delete", "pods", "-l", "app.kubernetes.io/component=protection-webhook", "--timeout=90s")...)

	r := n.try(t, "delete", "pod", n.podNames(t)[0], "--wait=false")
	if r.Code == 0 || !strings.Contains(r.Stderr, "vpodbudget.kb.io") {
		t.Errorf("the deletion of a covered pod was not denied:\n%s", r)
	}
	start := time.Now()
	if s := storm(t, c, other.name, unprotected, 1); s.passed != 2 {
		t.Errorf("%d of 2 deletions of pods without a budget passed, %d unanswered, others %v", s.passed, len(s.unanswered), s.others)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("pods without a budget were deleted in %s", took)
	}
	n.run(t, "label", "pod", "short", "--overwrite", "app=short") // changes nothing, so the webhook is not called
	n.await(t, "the kubelet has ended both pods", func() error {
		if got := n.getIfExists(t, "pod", "slow", "{.metadata.name}"); got != "" {
			return fmt.Errorf("%s exists", got)
		}
		if got := n.get(t, "pod", "short", "{.status.phase}"); got != "Succeeded" {
			return fmt.Errorf("phase of short is %s", got)
		}
		return nil
	})
	n.run(t, "delete", "pod", "short") // completed pods are not charged
	n.run(t, "delete", "namespace", n.name, "--timeout=90s")
}
