//go:build controlplane

package protection

import (
	"fmt"
	"strings"
	"testing"
)

// A pod belongs to the target by its chain of owners, for each kind of target.
func TestATargetMayBeOfAnyKindThatOwnsPods(t *testing.T) {
	t.Parallel()
	for _, tc := range []targetKind{
		{"apps/v1", "StatefulSet", "replicas: 2, serviceName: web", simulatedPodSpec},
		{"apps/v1", "ReplicaSet", "replicas: 2", simulatedPodSpec},
		{"apps/v1", "DaemonSet", "minReadySeconds: 0", simulatedPodSpec},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			t.Parallel()
			newNamespace(t).checkTarget(t, tc)
		})
	}
}

func TestARestartByOpenKruiseIsDecidedByTheBudget(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.installCRD(t, "ContainerRecreateRequest", "containerrecreaterequests", "v1alpha1")
	n.applyWithBudget(t, deploymentManifest(2, "{}"), budgetManifest("maxUnavailable: 0"))
	request := fmt.Sprintf(`{apiVersion: apps.kruise.io/v1alpha1, kind: ContainerRecreateRequest, metadata: {name: again}, spec: {podName: %s}}`, n.podNames(t)[0])
	n.await(t, "the webhook is called for the new kind", func() error {
		if r := n.Try(t, request, "create", "--dry-run=server", "-f", "-"); r.Code == 0 || !strings.Contains(r.Stderr, budgetDenial) {
			return fmt.Errorf("%s", r)
		}
		return nil
	})
	if r := n.Try(t, request, "create", "-f", "-"); r.Code == 0 || !strings.Contains(r.Stderr, budgetDenial) {
		t.Errorf("%s", r)
	}
}

// An eviction that a PodDisruptionBudget denies is not charged.
func TestAnEvictionDeniedByAPodDisruptionBudgetCostsNothing(t *testing.T) {
	t.Parallel()
	n, c := newNamespace(t), connect(t)
	n.applyWithBudget(t, deploymentManifest(3, "{}"), budgetManifest("maxUnavailable: 1"))
	n.apply(t, `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {minAvailable: 3, selector: {matchLabels: {app: web}}}}`)
	n.await(t, "the PodDisruptionBudget is computed", func() error {
		if got := n.get(t, "pdb", "web", "{.status.currentHealthy} {.status.disruptionsAllowed}"); got != "3 0" {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	for _, name := range n.podNames(t) {
		r := n.Try(t, fmt.Sprintf(`{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":%q}}`, name),
			"create", "--raw", n.path("pods")+"/"+name+"/eviction", "-f", "-")
		if r.Code == 0 || !strings.Contains(r.Stderr, "would violate") {
			t.Errorf("%s", r)
		}
	}
	b := awaitAllowed(t, c, n.name, 1) // fails when a charge remains
	if b.Status.CurrentAvailable != 3 {
		t.Errorf("%d pods are available", b.Status.CurrentAvailable)
	}
}
