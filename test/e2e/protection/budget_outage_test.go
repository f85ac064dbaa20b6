//go:build e2e

package protection

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// slowPod is a pod on the real node that takes its time to end.
const slowPod = `{apiVersion: v1, kind: Pod, metadata: {name: slow, labels: {app: slow}}, spec: {terminationGracePeriodSeconds: 8,
 containers: [{name: sleep, image: busybox, command: [/bin/sh, -c, "trap '' TERM; while true; do sleep 1; done"]}]}}`

// shortPod is a pod on the real node that ends by itself.
const shortPod = `{apiVersion: v1, kind: Pod, metadata: {name: short, labels: {app: short}}, spec: {restartPolicy: Never, terminationGracePeriodSeconds: 0,
 containers: [{name: sleep, image: busybox, command: [/bin/sleep, "5"]}]}}`

// While the webhook is down, what is guarded stays, and all else goes on.
func TestAnOutageOfTheWebhookAffectsOnlyNamespacesWithABudget(t *testing.T) {
	n, free := newNamespace(t), newNamespace(t)
	n.applyWithBudget(t, deploymentManifest(2, "{}"), budgetManifest("maxUnavailable: 1"))
	free.apply(t, deploymentManifest(2, "{}"))
	free.run(t, "rollout", "status", "deployment", "web", "--timeout=60s")
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
		t.Errorf("a guarded pod:\n%s", r)
	}
	start := time.Now()
	free.run(t, "delete", "pods", "--all")
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("pods that are not guarded went in %s", took)
	}
	n.run(t, "label", "pod", "short", "--overwrite", "app=short") // changes nothing, so nobody is asked
	n.await(t, "the kubelet has finished what was deleted and what ended", func() error {
		if got := n.run(t, "get", "pods", "slow", "--ignore-not-found", "-o", "name"); got != "" {
			return fmt.Errorf("%s is there", got)
		}
		if got := n.run(t, "get", "pod", "short", "-o", "jsonpath={.status.phase}"); got != "Succeeded" {
			return fmt.Errorf("short is %s", got)
		}
		return nil
	})
	n.run(t, "delete", "pod", "short") // it has finished
	n.run(t, "delete", "namespace", n.name, "--timeout=90s")
}

// client-go sleeps for as long as an answer says, up to ten times: a refusal must
// not say any time, or it would park the workers of the ReplicaSet controller.
func TestADeniedRolloutDoesNotDelayOtherReplicaSets(t *testing.T) {
	n, free := newNamespace(t), newNamespace(t)
	const oneByOne = "{rollingUpdate: {maxSurge: 0, maxUnavailable: 2}}"
	n.applyWithBudget(t, deploymentManifest(20, oneByOne), budgetManifest("minAvailable: 100%"))
	// No new pod ever starts, so not one of the old may go: the controller is
	// checkDenied for as long as it tries.
	n.run(t, "patch", "deployment", "web", "-p", `{"spec":{"template":{"spec":{"nodeSelector":{"nowhere":"true"}}}}}`)
	n.await(t, "the controller is refused", func() error {
		if got := n.run(t, "get", "events", "--field-selector=reason=DisruptionDenied", "-o", "name"); got == "" {
			return fmt.Errorf("no Event says so")
		}
		return nil
	})
	for range 3 {
		start := time.Now()
		free.apply(t, deploymentManifest(10, "{}"))
		free.run(t, "rollout", "status", "deployment", "web", "--timeout=60s")
		free.run(t, "delete", "deployment", "web", "--cascade=foreground", "--timeout=60s")
		if took := time.Since(start); took > 15*time.Second {
			t.Errorf("ten pods came and went in %s", took)
		}
	}
	if left := strings.Fields(n.run(t, "get", "pods", "--field-selector=status.phase=Running", "-o", "name")); len(left) != 20 {
		t.Errorf("%d of 20 are left", len(left))
	}
}
