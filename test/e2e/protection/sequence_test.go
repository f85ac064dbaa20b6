//go:build controlplane

package protection

import (
	"strings"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A drain retries a pod that the budget blocks.
func TestFlowControlDoesNotCountWhatABudgetDenies(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.applyWithBudget(t, deploymentManifest(3, "{}"), budgetManifest("minAvailable: 100%"))
	c, kube := newFlowControl(t, n, ""), unlimitedClient(t)
	c.setLimit(t, 100)
	pods := n.podNames(t)
	for i := range 20 {
		err := kube.PolicyV1().Evictions(n.name).Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: n.name, Name: pods[i%len(pods)]}})
		if !apierrs.IsTooManyRequests(err) || !strings.Contains(err.Error(), "PodUnavailableBudget web") {
			t.Fatalf("attempt %d: %v", i, err)
		}
	}
	if got := c.status(t, "buckets[*].count"); got != "" {
		t.Errorf("%s counted deletions", got)
	}
	// A flow control still counts a deletion that the budget allows, once.
	n.run(t, "patch", "pub", "web", "--type=merge", "-p", `{"spec":{"minAvailable":0}}`)
	awaitAllowed(t, connect(t), n.name, 3)
	n.run(t, "delete", "pod", pods[0])
	if got := c.status(t, "buckets[*].count"); got != "1" {
		t.Errorf("%q counted deletions after one", got)
	}
}

func TestWhatFlowControlDeniesDoesNotChargeABudget(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.applyWithBudget(t, deploymentManifest(3, "{}"), budgetManifest("maxUnavailable: 1"))
	c, kube := newFlowControl(t, n, ""), unlimitedClient(t) // with limit 0
	clients := connect(t)
	awaitAllowed(t, clients, n.name, 1)
	pods := n.podNames(t)
	for i := range 20 {
		err := kube.CoreV1().Pods(n.name).Delete(t.Context(), pods[i%len(pods)], metav1.DeleteOptions{})
		if !apierrs.IsForbidden(err) || !strings.Contains(err.Error(), "PodDeletionFlowControl "+c.name) {
			t.Fatalf("attempt %d: %v", i, err)
		}
		b, err := clients.policy.PolicyV1alpha1().PodUnavailableBudgets(n.name).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := allows(1)(b); err != nil {
			t.Fatalf("attempt %d: %v", i, err)
		}
	}
}
